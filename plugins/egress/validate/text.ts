// What the rules of credentials have in common: names, texts of callers in messages, and the two secrets' limits.

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const MAX_NAME = 255

/** of a value, as the proxy takes it */
export const MAX_VALUE = 16_384
/** of a whole header that a rule makes: what the proxy lets origins see */
export const MAX_HEADER = 32_768

/** The name of a variable. What JavaScript keeps for itself is none. */
export function isVariable (name: string): boolean {
  return name.length <= MAX_NAME && NAME.test(name) && name !== '__proto__'
}

/** A caller's text, cut and without control characters, to be put into a message. */
export function printable (text: string): string {
  const clean = text.replace(/\p{Cc}/gu, '?')
  return clean.length > 64 ? `${clean.slice(0, 64)}…` : clean
}

/** What the guest has in place of a credential. */
export function mockOf (credential: string): string {
  return `mock-${credential}`
}
