// The errors of the console. Codes are API: they never change.
import { BerthError, defineError, type DeclaredError } from '../../core/errors/define.ts'

export const BadKey = defineError('Unauthorized', 'unauthorized', () => 'key: this is no key of this server, or it was revoked or has expired')

// The next two have the codes of every route with a scope: what the API's document says about a route is valid with and without sessions.
export const SessionEnded = defineError('Unauthorized', 'unauthorized', () => 'the session has ended; log in again')

export const ForeignRequest = defineError('Forbidden', 'forbidden', (message: string) => message)

const TOO_MANY: DeclaredError = { code: 'too_many_attempts', kind: 'rate-limited' }

/** Says when the next attempt is allowed. */
export const TooManyAttempts = Object.assign(
  (seconds: number) => new BerthError(TOO_MANY.code, TOO_MANY.kind, `too many keys were refused; try again in ${seconds} s`, { retryAfterSeconds: seconds }),
  TOO_MANY
)
