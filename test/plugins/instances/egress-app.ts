// Servers on a scripted host whose instances go out through a proxy, and what a test asks of them.
import type { Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { openDatabase } from './database.ts'
import { ScriptedHost } from './scripted.ts'
import type { ScriptedEgress } from './scripted-egress.ts'
import type { ScriptedNetwork } from './scripted-network.ts'

export interface Mediated extends TestApp { readonly network: ScriptedNetwork, readonly egress: ScriptedEgress }

/** what a credential is, and what it becomes */
export const REAL = 'real-value-4c1ee0'
export const NEXT = 'next-value-93bd17'
export const unavailable = { status: 503, body: { code: 'egress_unavailable' } }
/** fields of a create request */
export const asked = {
  env: { SECRET: REAL, PLAIN: 'x' },
  network: { egress: { enabled: true } },
  credentials: { TOKEN: { source: { env: 'SECRET' }, inject: [{ hosts: ['api.example.com'], as: { header: 'authorization', format: 'Bearer ${value}' } }] } }
}

/** With a proxy and a network that must never be asked for anything in the wrong order. */
export function hostWith (t: Test): { host: ScriptedHost, network: ScriptedNetwork, egress: ScriptedEgress } {
  const host = new ScriptedHost()
  const { network, egress } = host.mediate()
  t.teardown(() => {
    const faults = [...network.faults, ...egress.faults]
    if (faults.length > 0) throw new Error(faults.join('; '))
  })
  return { host, network, egress }
}

export async function start (t: Test, options: StartOptions = {}): Promise<Mediated> {
  const { host, network, egress } = hostWith(t)
  return { ...await startApp(t, { host, ...options }), network, egress }
}

/** With an instance `web`. */
export async function running (t: Test, fields: Record<string, unknown> = {}, options: StartOptions = {}): Promise<Mediated & { id: string }> {
  const app = await start(t, options)
  const id = await app.make('web', { ...asked, ...fields })
  await app.waitFor('web', 'Running')
  return { ...app, id }
}

/** Whose policy the proxy enforces. */
export const enforced = ({ egress }: Mediated): string[] => [...egress.policies.keys()].sort()

export async function rows ({ dataDir }: TestApp): Promise<string[]> {
  const database = await openDatabase(dataDir)
  try {
    const found: { id: string }[] = await database('instances_instances').select('id')
    return found.map(({ id }) => id).sort()
  } finally {
    await database.destroy()
  }
}
