// How a domain error is declared and created. Domain code names a kind, never a status number.
import { STATUS_BY_KIND, type ErrorKind } from './kinds.ts'

export interface ErrorDetail { readonly code: string, readonly message: string }

/** An error that is written for the caller of the API. `code` is part of the API and never changes. */
export class BerthError extends Error {
  override readonly name = 'BerthError'
  readonly code: string
  readonly kind: ErrorKind
  readonly details: readonly ErrorDetail[] | undefined
  /** seconds after which the same call may succeed */
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

/** The part of an error that is declared. */
export interface DeclaredError {
  readonly code: string
  readonly kind: ErrorKind
}

export interface ErrorFactory<A extends unknown[]> extends DeclaredError {
  (...args: A): BerthError
  /** Creates the same error with its cause. */
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
