// The one gate of requests: decisions before anything is sent or dialled, the same for every protocol.
import type { ReasonCode } from '../contract/reasons.ts'
import { parseAuthority, type Authority } from '../contract/canonical-host.ts'

/** How a guest's connection arrived: with or without TLS, and to which port. All connections of a VM that arrive in the same way go to the same server. */
export interface GuestWay {
  /** whether the connection must speak TLS */
  readonly secure: boolean
  /** port that the guest connected to */
  readonly port: number
}

/** How the connection of a request arrived. */
export interface Way extends GuestWay {
  /** name of the TLS handshake; absent on plain connections */
  readonly serverName: string | undefined
}

/** What a request says about its host. */
export interface Arrival {
  readonly host: string | undefined
  /** whether the name of the handshake may stand in for a missing Host */
  readonly mayOmitHost: boolean
}

/** The state of the VM and of the log at the moment of the request. */
export interface Circumstances {
  /** requests of the same VM that are under way, with this one */
  readonly requests: number
  readonly mostRequests: number
  /** whether its audit line can be written */
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
 * The host and port that a request names, or why it cannot go there. Both names must agree: a request on a connection with one host's certificate
 * must not reach another host, nor carry the other host's credentials. Pure.
 */
export function destinationOf (written: string, { secure, port, serverName }: Way): Authority | ReasonCode {
  const authority = parseAuthority(written)
  if (authority === undefined) return 'bad_host'
  if ((authority.port ?? port) !== port) return 'misdirected'
  if (secure && authority.name !== serverName) return 'misdirected'
  return authority
}
