// What a key looks like, and the only form in which it is kept.
import { hash, randomBytes } from 'node:crypto'

const PREFIX = 'berth_'

/** A new key: 256 random bits behind the id, so that a leaked key can be found and revoked without knowing more of it. */
export function makeKey (id: string): string {
  return `${PREFIX}${id}_${randomBytes(32).toString('base64url')}`
}

/** SHA-256: enough for a key that is random throughout, and cheap enough for every request. */
export function hashKey (key: string): string {
  return hash('sha256', key, 'hex')
}

/** The id inside a key that Berth made; undefined for any other text. */
export function idOfKey (key: string): string | undefined {
  return /^berth_([a-z0-9]+)_[A-Za-z0-9_-]{43}$/.exec(key)?.[1]
}
