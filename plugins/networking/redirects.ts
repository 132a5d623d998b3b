// Which TCP ports of guests the egress proxy takes, and on which of its own ports. Only the kernel's rules keep this beyond a server's life, as long as the guests themselves live.
import type { MediatedPorts, ProxyListener } from './contract.ts'
import type { NetworkingConfig } from './manifest.ts'

/** Port that guests connect to → port of the proxy. */
export type Redirects = ReadonlyMap<number, number>

export const LIST_REDIRECTS = ['--json', 'list', 'map', 'inet', 'berth', 'redirects']

/** The mediated ports until another plugin sets them. */
export const DEFAULT_PORTS: MediatedPorts = { http: [80], https: [443] }

/** How many further ports there is room for. */
export const MOST_FURTHER_PORTS = 32

/** The proxy's listeners. The first port of each kind has a listener port of its own; the others are numbered from `furtherPorts` on, in the given order. */
export function listenersFor ({ http, https }: MediatedPorts, { httpPort, httpsPort, furtherPorts }: NetworkingConfig['proxy']): ProxyListener[] {
  const kinds = [...http.map((meant) => ({ kind: 'http' as const, meant })), ...https.map((meant) => ({ kind: 'https' as const, meant }))]
  const own = new Map([[80, httpPort], [443, httpsPort]])
  const further = kinds.filter(({ meant }) => !own.has(meant))
  return kinds.map((each) => ({ ...each, port: own.get(each.meant) ?? furtherPorts + further.indexOf(each) }))
}

export function redirectsOf (listeners: readonly ProxyListener[]): Redirects {
  return new Map(listeners.map(({ meant, port }) => [meant, port]))
}

/** The redirects that an earlier server has left in the kernel; undefined: the answer of `nft` contains none. */
export function redirectsIn (answer: string): Redirects | undefined {
  const { nftables = [] } = JSON.parse(answer) as { readonly nftables?: ReadonlyArray<{ readonly map?: { readonly elem?: ReadonlyArray<readonly [unknown, unknown]> } }> }
  const pairs = nftables.flatMap(({ map }) => map?.elem ?? []).map(([meant, port]) => [Number(meant), Number(port)] as const)
  return pairs.length > 0 && pairs.flat().every(Number.isInteger) ? new Map(pairs) : undefined
}
