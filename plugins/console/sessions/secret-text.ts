// Secrets that nobody can guess, and the only form in which they are kept.
import { hash, randomBytes } from 'node:crypto'

/** The form of our secrets; any other text is not looked up. */
const SHAPE = /^[A-Za-z0-9_-]{43}$/

/** 256 random bits. */
export function makeSecret (): string {
  return randomBytes(32).toString('base64url')
}

/** The form in which a secret is kept; `undefined` for an invalid one. */
export function keptForm (secret: string): string | undefined {
  return SHAPE.test(secret) ? hash('sha256', secret, 'hex') : undefined
}
