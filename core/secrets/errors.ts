// The error of secrets that cannot be opened.
import { defineError } from '../errors/define.ts'

/** The message says why, and nothing of the secret. */
export const SecretUnavailable = defineError('secret_unavailable', 'unavailable', (why: string) => `a stored secret cannot be opened: ${why}`)
