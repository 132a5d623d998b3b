// Shared by the rules for credentials: names, callers' texts in messages, and two limits.

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const MAX_NAME = 255

/** longest value that the proxy takes */
export const MAX_VALUE = 16_384
/** longest header that a rule may make: the most that the proxy sends to origins */
export const MAX_HEADER = 32_768

/** Whether it is the name of a variable. JavaScript's `__proto__` is refused. */
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
