// Makes the namespace match what is known: removes strays, and restores what a plugged guest lacks.
import type { Bridges } from './bridges.ts'
import { permanentNeighbours, readLinks, type Link } from './links.ts'
import { BRIDGE, isGuestLink, shaperOf, tapOf } from './names.ts'
import { repairLines } from './port-lines.ts'
import type { AddressRecord, PortSpec } from './repository.ts'
import type { NetworkTools } from './tools.ts'

type Port = AddressRecord & { readonly spec: PortSpec }

/** Removes TAPs, shapers and neighbours that belong to no guest. Devices that others have put into the namespace stay. */
export async function removeStrays (tools: NetworkTools, links: ReadonlyMap<string, Link>, ports: readonly Port[]): Promise<void> {
  const wanted = new Set(ports.flatMap(({ instanceId, spec }) => [tapOf(instanceId), ...spec.limits.uploadBps === undefined ? [] : [shaperOf(instanceId)]]))
  const addresses = new Set(ports.map(({ ip }) => ip))
  const strayLinks = [...links.keys()].filter((name) => isGuestLink(name) && !wanted.has(name))
  const strayNeighbours = links.has(BRIDGE) ? (await permanentNeighbours(tools, BRIDGE)).filter((address) => !addresses.has(address)) : []
  // One by one: commands of a server that was killed may still be changing the same devices.
  await tools.ipEach([
    ...strayLinks.map((name) => `link del dev ${name}`),
    ...strayNeighbours.map((address) => `neigh del ${address} dev ${BRIDGE}`)
  ])
  if (strayLinks.length === 0) return
  const left = await readLinks(tools)
  const stuck = strayLinks.find((name) => left.has(name))
  if (stuck !== undefined) throw new Error(`the device ${stuck} belongs to no guest and could not be removed`)
}

/** Restores each plugged guest's TAP; correct ones are not affected. @param suspended instances whose TAPs must be down */
export async function repairPorts (tools: NetworkTools, links: ReadonlyMap<string, Link>, ports: readonly Port[], { suspended, bridges }: { readonly suspended: ReadonlySet<string>, readonly bridges: Pick<Bridges, 'of'> }): Promise<void> {
  const lines = ports.map((port) => repairLines(port, port.spec, { hasShaper: links.has(shaperOf(port.instanceId)), isDown: suspended.has(port.instanceId), bridge: bridges.of(port.instanceId) }))
  await tools.ip(lines.flatMap(({ ip }) => ip))
  await Promise.all([tools.bridge(lines.flatMap(({ bridge }) => bridge)), tools.tc(lines.flatMap(({ tc }) => tc))])
}
