// Which TCP ports of guests the egress proxy takes, and at which of its own ports. The kernel's rules are the only record of it that outlives a server, as long as the guests themselves do.
import type { MediatedPorts, ProxyListener } from './contract.ts'
import type { NetworkingConfig } from './manifest.ts'

/** What guests mean → where the proxy listens. */
export type Redirects = ReadonlyMap<number, number>

export const LIST_REDIRECTS = ['--json', 'list', 'map', 'inet', 'berth', 'redirects']

/** What is mediated until somebody says otherwise. */
export const DEFAULT_PORTS: MediatedPorts = { http: [80], https: [443] }

/** So many are there room for, beside these. */
export const MOST_FURTHER_PORTS = 32

/** What the proxy has to listen to. The first port of each kind has a place of its own, others are counted from `furtherPorts` in the order in which they are given. */
export function listenersFor ({ http, https }: MediatedPorts, { httpPort, httpsPort, furtherPorts }: NetworkingConfig['proxy']): ProxyListener[] {
  const kinds = [...http.map((meant) => ({ kind: 'http' as const, meant })), ...https.map((meant) => ({ kind: 'https' as const, meant }))]
  const own = new Map([[80, httpPort], [443, httpsPort]])
  const further = kinds.filter(({ meant }) => !own.has(meant))
  return kinds.map((each) => ({ ...each, port: own.get(each.meant) ?? furtherPorts + further.indexOf(each) }))
}

export function redirectsOf (listeners: readonly ProxyListener[]): Redirects {
  return new Map(listeners.map(({ meant, port }) => [meant, port]))
}

/** Those that an earlier server has left in the kernel; undefined: the answer of `nft` tells of none. */
export function redirectsIn (answer: string): Redirects | undefined {
  const { nftables = [] } = JSON.parse(answer) as { readonly nftables?: ReadonlyArray<{ readonly map?: { readonly elem?: ReadonlyArray<readonly [unknown, unknown]> } }> }
  const pairs = nftables.flatMap(({ map }) => map?.elem ?? []).map(([meant, port]) => [Number(meant), Number(port)] as const)
  return pairs.length > 0 && pairs.flat().every(Number.isInteger) ? new Map(pairs) : undefined
}
