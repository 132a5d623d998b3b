// The one gate of requests: what is decided before anything is sent or dialled, the same for every protocol.
import type { ReasonCode } from '../contract/reasons.ts'
import { parseAuthority, type Authority } from '../contract/canonical-host.ts'

/** By which way a guest reached out: all its connections of one way end at one server. */
export interface GuestWay {
  /** whether it is to speak TLS */
  readonly secure: boolean
  /** port that the guest meant */
  readonly port: number
}

/** Of the connection that a request came over. */
export interface Way extends GuestWay {
  /** name of the TLS handshake; absent on plain connections */
  readonly serverName: string | undefined
}

/** What a request says of its host. */
export interface Arrival {
  readonly host: string | undefined
  /** the name of the handshake may stand in for it */
  readonly mayOmitHost: boolean
}

/** What there is for it. */
export interface Circumstances {
  /** requests of the same VM that are under way, with this one */
  readonly requests: number
  readonly mostRequests: number
  /** whether its line can be written */
  readonly isRecorded: boolean
}

/** The host that a request is for, as it wrote it, or why it is refused. Pure. @param arrival a reason, when its header was refused already */
export function admit (arrival: Arrival | ReasonCode, { serverName }: Pick<Way, 'serverName'>, { requests, mostRequests, isRecorded }: Circumstances): { readonly host: string } | ReasonCode {
  if (typeof arrival === 'string') return arrival
  if (requests > mostRequests) return 'too_many_requests'
  if (!isRecorded) return 'audit_unavailable'
  const host = arrival.host ?? (arrival.mayOmitHost ? serverName : undefined)
  return host === undefined ? 'bad_host' : { host }
}

/**
 * The host and port that a request names, or why it cannot go there. Both names must agree: a request that reached one host's certificate
 * cannot end at another host, nor carry that one's credentials. Pure.
 */
export function destinationOf (written: string, { secure, port, serverName }: Way): Authority | ReasonCode {
  const authority = parseAuthority(written)
  if (authority === undefined) return 'bad_host'
  if ((authority.port ?? port) !== port) return 'misdirected'
  if (secure && authority.name !== serverName) return 'misdirected'
  return authority
}
