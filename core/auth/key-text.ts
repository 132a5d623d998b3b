// What a key looks like, and the only form in which it is kept.
import { hash, randomBytes } from 'node:crypto'

const PREFIX = 'berth_'
/** Longer texts are no keys; the limit keeps junk from being hashed. */
const MAX_KEY_LENGTH = 256

/** Stands for the hash of a text that cannot be a key; no key has it. */
export const NO_KEY = ''

/** A new key: 256 random bits behind the id, so that a leaked key can be found and revoked without knowing more of it. */
export function makeKey (id: string): string {
  return `${PREFIX}${id}_${randomBytes(32).toString('base64url')}`
}

/** SHA-256: enough for a key that is random throughout, and cheap enough for every request. */
export function hashKey (key: string): string {
  return hash('sha256', key, 'hex')
}

/** The hash of a text that somebody presents as a key. */
export function hashPresented (text: string): string {
  return text === '' || text.length > MAX_KEY_LENGTH ? NO_KEY : hashKey(text)
}

/** The id inside a key that Berth made; undefined for any other text. */
export function idOfKey (key: string): string | undefined {
  return /^berth_([a-z0-9]+)_[A-Za-z0-9_-]{43}$/.exec(key)?.[1]
}
