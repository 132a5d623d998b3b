// The errors of the console. Codes are API: they never change.
import { BerthError, defineError, type DeclaredError } from '../../core/errors/define.ts'

export const BadKey = defineError('Unauthorized', 'unauthorized', () => 'key: this is no key of this server, or it was revoked or has expired')

// The next two have the codes that every route with a scope has: what the API's document says of a route is the same with sessions and without.
export const SessionEnded = defineError('Unauthorized', 'unauthorized', () => 'the session has ended; log in again')

export const ForeignRequest = defineError('Forbidden', 'forbidden', (message: string) => message)

const TOO_MANY: DeclaredError = { code: 'too_many_attempts', kind: 'rate-limited' }

/** Says when the next attempt is allowed. */
export const TooManyAttempts = Object.assign(
  (seconds: number) => new BerthError(TOO_MANY.code, TOO_MANY.kind, `too many keys were refused; try again in ${seconds} s`, { retryAfterSeconds: seconds }),
  TOO_MANY
)
