// Parses the output of `ip -json -details address show`.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { NetworkTools } from './tools.ts'

const LinkSchema = Type.Object({
  ifname: Type.String(),
  address: Type.Optional(Type.String()),
  master: Type.Optional(Type.String()),
  ifalias: Type.Optional(Type.String()),
  addr_info: Type.Optional(Type.Array(Type.Object({ family: Type.Optional(Type.String()), local: Type.Optional(Type.String()), prefixlen: Type.Optional(Type.Integer()) })))
})
const Links = Type.Array(LinkSchema)
const Routes = Type.Array(Type.Object({ dev: Type.Optional(Type.String()), metric: Type.Optional(Type.Integer()) }))
const Entries = Type.Array(Type.Object({ mac: Type.String(), state: Type.Optional(Type.String()) }))
const Neighbours = Type.Array(Type.Object({ dst: Type.String() }))

export type Link = Static<typeof LinkSchema>

/** All links of a namespace, by name. */
export async function readLinks (tools: NetworkTools): Promise<ReadonlyMap<string, Link>> {
  const found = await tools.query(['-details', 'address', 'show'])
  // ip prints an empty object for each link that its filter leaves out
  const links = Array.isArray(found) ? found.filter((link: unknown) => Value.Check(LinkSchema, link)) : found
  if (!Value.Check(Links, links)) throw new Error('ip printed a list of links that cannot be read')
  return new Map(links.map((link) => [link.ifname, link]))
}

/** The device of a route: the one with the least metric. */
export async function routeDevice (tools: NetworkTools, destination: readonly string[]): Promise<string | undefined> {
  const routes = await tools.query(['-4', 'route', 'show', ...destination])
  if (!Value.Check(Routes, routes)) throw new Error('ip printed a list of routes that cannot be read')
  return routes.toSorted((a, b) => (a.metric ?? 0) - (b.metric ?? 0)).find(({ dev }) => dev !== undefined)?.dev
}

/** Addresses of the permanent neighbours. */
export async function permanentNeighbours (tools: NetworkTools, device: string): Promise<string[]> {
  const neighbours = await tools.query(['-4', 'neighbour', 'show', 'dev', device, 'nud', 'permanent'])
  if (!Value.Check(Neighbours, neighbours)) throw new Error('ip printed a list of neighbours that cannot be read')
  return neighbours.map(({ dst }) => dst)
}

/** The MACs that a bridge was told to find behind one of its ports. */
export async function staticEntries (tools: NetworkTools, port: string): Promise<string[]> {
  const text = await tools.run('bridge', ['-json', 'fdb', 'show', 'brport', port])
  const entries: unknown = text.trim() === '' ? [] : JSON.parse(text)
  if (!Value.Check(Entries, entries)) throw new Error('bridge printed a list of entries that cannot be read')
  return entries.filter(({ state }) => state === 'static').map(({ mac }) => mac)
}
