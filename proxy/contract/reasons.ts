// Every reason for which this program refuses or gives up on something: its code for the audit log, the status and the sentence for the guest.

export interface Reason {
  readonly status: number
  /** fixed text: it contains nothing from the origin, the resolver or the policy */
  readonly message: string
}

/** Code → what the guest is told. proxy/README.md lists the same codes. */
export const REASONS = {
  unknown_source: { status: 403, message: 'No policy exists for this address.' },
  cut_off: { status: 403, message: 'The traffic of this machine kept ending the proxy.' },
  bad_request: { status: 400, message: 'The request is not well-formed HTTP.' },
  bad_host: { status: 400, message: 'The request must name exactly one valid host.' },
  misdirected: { status: 421, message: 'The host of the request is not the host of the connection.' },
  method_refused: { status: 405, message: 'The method is not allowed.' },
  expectation_failed: { status: 417, message: 'The expectation cannot be met.' },
  headers_too_large: { status: 431, message: 'The header of the request is too large.' },
  header_timeout: { status: 408, message: 'The request took too long to arrive.' },
  slow_body: { status: 408, message: 'The body of the request arrives too slowly.' },
  metadata_refused: { status: 403, message: 'Metadata services cannot be reached.' },
  private_address: { status: 403, message: 'The host has no public address.' },
  own_address: { status: 403, message: 'The host is this machine.' },
  resolve_failed: { status: 502, message: 'The host could not be resolved.' },
  resolve_timeout: { status: 504, message: 'Resolving the host took too long.' },
  connect_failed: { status: 502, message: 'The host could not be reached.' },
  connect_timeout: { status: 504, message: 'Connecting to the host took too long.' },
  upstream_certificate: { status: 502, message: 'The certificate of the host is not valid.' },
  upstream_tls: { status: 502, message: 'No secure connection to the host could be made.' },
  upstream_failed: { status: 502, message: 'The host ended the connection.' },
  proxy_fault: { status: 502, message: 'The proxy could not carry the request.' },
  upstream_timeout: { status: 504, message: 'The host sent nothing for too long.' },
  secret_unavailable: { status: 503, message: 'A credential for this host is not available.' },
  too_many_requests: { status: 429, message: 'Too many requests are under way.' },
  too_many_connections: { status: 429, message: 'Too many connections are open.' },
  too_many_names: { status: 429, message: 'Too many new hosts in a short time.' },
  audit_unavailable: { status: 503, message: 'Requests cannot be recorded at the moment.' },
  draining: { status: 503, message: 'The proxy is stopping.' },
  guest_closed: { status: 499, message: 'The guest closed the connection.' },
  policy_changed: { status: 403, message: 'The policy of this machine changed.' },
  no_server_name: { status: 0, message: 'The TLS handshake names no server.' },
  bad_server_name: { status: 0, message: 'The TLS handshake names no valid server.' },
  handshake_failed: { status: 0, message: 'The TLS handshake failed.' },
  handshake_timeout: { status: 0, message: 'The TLS handshake took too long.' },
  no_request: { status: 0, message: 'The connection ended before a request.' },
  dns_refused: { status: 0, message: 'The DNS query is not answered.' },
  dns_limited: { status: 0, message: 'Too many DNS queries in a short time.' }
} as const satisfies Record<string, Reason>

export type ReasonCode = keyof typeof REASONS

/** The reason code for an error on the way to an origin. */
export function reasonOf (error: unknown): ReasonCode {
  return error instanceof Refusal ? error.code : 'upstream_failed'
}

/** Why a request or connection is refused; the guest and the log learn only the code. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: ReasonCode

  constructor (code: ReasonCode, options?: ErrorOptions) {
    super(REASONS[code].message, options)
    this.code = code
  }
}
