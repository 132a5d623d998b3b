// Why an instance was not woken for a caller.
import { defineError } from '../../../core/errors/define.ts'

export const CannotBeWoken = defineError('cannot_be_woken', 'unavailable', (name: string, why: string) => `instance ${name} cannot be woken: ${why}`, { retryAfterSeconds: 5 })

export const TooManyWaiting = defineError('too_many_waiting', 'unavailable', (why: string) => why, { retryAfterSeconds: 1 })

export const WakeTimedOut = defineError('wake_timeout', 'unavailable', (name: string, seconds: number) =>
  `instance ${name} is being woken, and was not awake within ${seconds} s`, { retryAfterSeconds: 5 })
