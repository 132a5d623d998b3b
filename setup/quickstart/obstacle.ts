// Checks whether the server runs everything that the demo needs; GET /plugins says what it cannot run on this host.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Api } from '../server/api.ts'

const Reports = Type.Array(Type.Object({ id: Type.String(), state: Type.String(), reason: Type.Union([Type.String(), Type.Null()]) }))
// In the order of importance: the later ones are often off because of an earlier one.
const NEEDED = ['hypervisor-qemu', 'guest', 'registry', 'images', 'instances']

/** This host lacks something that only its administrator can provide; the message says everything. */
export class HostLacks extends Error {}

/** @throws HostLacks with the reason of the plugin that is off */
export async function requirePlugins (api: Api): Promise<void> {
  const all = await api.call('GET', '/plugins')
  if (!Value.Check(Reports, all)) throw new Error('GET /plugins: an answer that is not understood')
  const off = NEEDED.flatMap((id) => all.filter((report) => report.id === id && report.state !== 'started'))
  const cause = off.find(({ state }) => state !== 'blocked') ?? off[0]
  if (cause !== undefined) throw new HostLacks(`the server's plugin ${cause.id} is ${cause.state}: ${cause.reason ?? 'no reason given'}`)
}
