// What a test and the program of its origins say to each other, and the names that the origins have. Types and constants only.

/** Where the origin `api` speaks TLS, too, and guests reach it through the proxy. */
export const FURTHER_PORT = 8443

/** Every origin by its name. Each has an address of its own. */
export const ORIGINS = {
  /** echoes, and has bodies of any size; also over plain HTTP */
  api: 'api.good.test',
  /** one label below a wildcard, and two */
  wild: 'a.wild.good.test',
  deep: 'a.b.wild.good.test',
  /** no rule names it; also over plain HTTP */
  other: 'other.test',
  git: 'git.good.test',
  grpc: 'grpc.good.test',
  socket: 'socket.good.test',
  events: 'events.good.test',
  /** npm, pip, apt, cargo and go */
  packages: 'packages.good.test',
  /** a registry that wants Basic, whose blobs are elsewhere */
  registry: 'registry.good.test',
  content: 'content.test',
  /** a registry that wants a token of `login` */
  tokens: 'tokens.good.test',
  login: 'login.good.test'
} as const

export type OriginName = keyof typeof ORIGINS

/** One request as it came to an origin. */
export interface Seen {
  readonly origin: OriginName
  /** over TLS */
  readonly secure: boolean
  readonly protocol: string
  readonly method: string
  readonly url: string
  /** names and values in turn, as they came */
  readonly headers: readonly string[]
  readonly bodyBytes: number
  readonly bodyHash: string
  /** the beginning of the body, as latin1 */
  readonly body: string
  /** when its headers were there: milliseconds of the clock that all processes of this machine share */
  readonly atMs: number
}

export interface OriginsPlace {
  /** certificate of the authority of all origins */
  readonly authority: string
  /** `address#port` of the DNS server */
  readonly nameServer: string
}

export interface Passwords {
  /** the only values that `packages` and `login` let in */
  readonly bearer: string
  /** base64 of `user:password`; what `git`, `registry` and `login` let in */
  readonly basic: string
}

export type Order =
  | { readonly do: 'start', readonly network: string, readonly folder: string, readonly passwords: Passwords }
  | { readonly do: 'seen' }
  /** forgets what was seen so far */
  | { readonly do: 'forget' }
  /** lets what is held go */
  | { readonly do: 'open' }
  | { readonly do: 'passwords', readonly passwords: Passwords }

/** Milliseconds of the machine's own clock, the same in every process and network namespace. */
export function machineMs (): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}
