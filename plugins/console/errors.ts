// The errors of the console. Codes are API: they never change.
import { BerthError, defineError } from '../../core/errors/define.ts'

export const BadKey = defineError('Unauthorized', 'unauthorized', () => 'key: this is no key of this server, or it was revoked or has expired')

export const SessionEnded = defineError('session_ended', 'unauthorized', () => 'the session has ended; log in again')

export const ForeignRequest = defineError('foreign_request', 'forbidden', (message: string) => message)

export function TooManyAttempts (seconds: number): BerthError {
  return new BerthError('too_many_attempts', 'rate-limited', `too many keys were refused; try again in ${seconds} s`, { retryAfterSeconds: seconds })
}
