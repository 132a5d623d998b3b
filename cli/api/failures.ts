// Turns an error answer of the server, or a missing answer, into a message for the user of the command.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Target } from '../connection/target.ts'

/** An answer of 400 and above. */
export class Refusal extends Failure {
  readonly status: number
  readonly code: string

  constructor (status: number, code: string, message: string) {
    super(message, { exitCode: exitCodeOf(status), hint: hintOf(status, code) })
    this.status = status
    this.code = code
  }
}

/** Reads `{code, message}`; any other body came from something between this client and the server. */
export function refusalOf (status: number, text: string): Refusal {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && 'code' in body && 'message' in body) return new Refusal(status, String(body.code), String(body.message))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return new Refusal(status, 'not_berth', `the answer was ${status}, and not one of Berth's`)
}

/** There was no connection, or it ended before its answer did. A cause that says what happened stays as it is. */
export function unreachable (target: Target, cause: unknown): Failure {
  if (cause instanceof Failure) return cause
  const why = cause instanceof Error ? ('code' in cause && typeof cause.code === 'string' ? REASONS[cause.code] ?? cause.message : cause.message) : String(cause)
  return new Failure(`${target.url.origin}: ${why === '' ? 'the connection failed' : why}`, { exitCode: EXIT.unreachable, cause, hint: target.origin === 'this host' ? 'is the server running? "berth doctor" looks; another one is named by --url or BERTH_URL' : '"berth doctor" looks further' })
}

/** No answer has begun in time. */
export function late (target: Target, timeoutMs: number): Failure {
  return new Failure(`${target.url.origin} did not answer within ${timeoutMs / 1000} s`, { exitCode: EXIT.timeout })
}

/** The connection ended in the middle of an answer. */
export function lost (target: Target, what: string): Failure {
  return new Failure(`${target.url.origin}: the connection was lost ${what}`, { exitCode: EXIT.unreachable })
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing answers there',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name cannot be looked up now',
  ETIMEDOUT: 'it does not answer',
  ECONNRESET: 'the connection was cut off',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed; name the authority with --ca FILE',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an unknown authority; name it with --ca FILE',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an unknown authority; name it with --ca FILE',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an unknown authority; name it with --ca FILE',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired'
}

function exitCodeOf (status: number): number {
  if (status === 401 || status === 403) return EXIT.notAllowed
  if (status === 404) return EXIT.notFound
  if (status === 409) return EXIT.conflict
  return EXIT.failed
}

function hintOf (status: number, code: string): string | undefined {
  if (status === 401) return 'log in with "berth login", or set BERTH_TOKEN'
  if (status === 403) return 'a key with more scopes is needed: "berth whoami" shows those of this one'
  if (code === 'plugin_disabled') return '"berth plugins" shows what this server has'
  if (code === 'ambiguous') return 'write more of the id'
  return undefined
}
