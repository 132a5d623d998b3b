// Where everything is on the far side, and what a test and the program there say to each other. Types and constants only.

/** Addresses as the internet has them, since the proxy lets no others through; the namespaces lead nowhere else. */
export const NETWORK = '128.66.0'
/** of the "host" on the way out */
export const HOST = `${NETWORK}.1`
export const NAME_SERVER = `${NETWORK}.2`
/** `api.good.test`, which a rule names, and `other.test`, which none names: over TLS and in plain */
export const API = { host: 'api.good.test', address: `${NETWORK}.10` } as const
export const OTHER = { host: 'other.test', address: `${NETWORK}.11` } as const
/** Greets whoever gets through on each of its ports. No name leads to it. */
export const STRANGER = `${NETWORK}.66`
export const GREETING = 'direct'
export const STRANGER_TCP = [22, 53, 80, 443, 853, 5432, 8443] as const
export const STRANGER_UDP = [53, 80, 123, 443, 853, 8853] as const
export const ADDRESSES = [NAME_SERVER, API.address, OTHER.address, STRANGER] as const

/** Types of DNS questions that offer HTTP/3 and hidden names. */
export const SVCB = 64
export const HTTPS = 65

/** One request as it came to an origin. */
export interface Seen {
  readonly host: string
  readonly secure: boolean
  readonly url: string
  readonly authorization: string | undefined
  readonly traceparent: string | undefined
  /** of the connection that it came on */
  readonly port: number
  /** the TLS session was one of before */
  readonly resumed: boolean
}

export type Order =
  | { readonly do: 'start' }
  | { readonly do: 'seen' }
  /** names that were asked for */
  | { readonly do: 'asked' }
  /** streams that are open now: the end of their URL */
  | { readonly do: 'streams' }

export interface Place { readonly authority: string }
