// Reads the key out of an Authorization header.
import { hashPresented } from './key-text.ts'

/** The key of `Bearer <key>`; undefined when the header has another form. */
export function bearerKey (header: string): string | undefined {
  return /^Bearer +([^\s]+) *$/i.exec(header)?.[1]
}

/** The hash of that key. */
export function hashOfHeader (header: string): string | undefined {
  const key = bearerKey(header)
  return key === undefined ? undefined : hashPresented(key)
}

/**
 * The keys that a header may mean, for registries: `Bearer <key>`, or `Basic`, where the key is the password, or, with some
 * clients, the user name. Empty when the header has another form.
 */
export function presentedKeys (header: string): string[] {
  const bearer = bearerKey(header)
  if (bearer !== undefined) return [bearer]
  const encoded = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(header)?.[1]
  if (encoded === undefined) return []
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 0) return []
  return [text.slice(colon + 1), text.slice(0, colon)].filter((part) => part !== '')
}
