// How a domain error is declared and made. Domain code names a kind, never a status number.
import { STATUS_BY_KIND, type ErrorKind } from './kinds.ts'

export interface ErrorDetail { readonly code: string, readonly message: string }

/** An error that the caller of the API is meant to read. `code` is API and never changes. */
export class BerthError extends Error {
  override readonly name = 'BerthError'
  readonly code: string
  readonly kind: ErrorKind
  readonly details: readonly ErrorDetail[] | undefined
  /** when the same call may well succeed */
  readonly retryAfterSeconds: number | undefined

  constructor (code: string, kind: ErrorKind, message: string, options: { cause?: unknown, details?: readonly ErrorDetail[], retryAfterSeconds?: number | undefined } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.kind = kind
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get statusCode (): number { return STATUS_BY_KIND[this.kind] }
}

/** What is known of an error before there is one. */
export interface DeclaredError {
  readonly code: string
  readonly kind: ErrorKind
}

export interface ErrorFactory<A extends unknown[]> extends DeclaredError {
  (...args: A): BerthError
  /** The same error with the error that led to it. */
  from (cause: unknown, ...args: A): BerthError
  /** Whether an unknown thrown value is this error. */
  is (value: unknown): value is BerthError
}

/**
 * Declares one error of a plugin.
 * @example const InstanceNotFound = defineError('not_found', 'not-found', (ref: string) => `instance ${ref} does not exist`)
 */
export function defineError<A extends unknown[]> (code: string, kind: ErrorKind, message: (...args: A) => string, options: { readonly retryAfterSeconds?: number } = {}): ErrorFactory<A> {
  const make = (...args: A): BerthError => new BerthError(code, kind, message(...args), options)
  return Object.assign(make, {
    from: (cause: unknown, ...args: A) => new BerthError(code, kind, message(...args), { ...options, cause }),
    code,
    kind,
    is: (value: unknown): value is BerthError => value instanceof BerthError && value.code === code && value.kind === kind
  })
}
