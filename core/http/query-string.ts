// Reads query strings, with `tags[team]=backend` as nested values and limits on what a stranger can make of it.
import { parse } from 'qs'

const LIMITS = {
  depth: 1,
  parameterLimit: 200,
  // A list is its parameter, repeated: what stands in brackets is a key, and may be a number.
  parseArrays: false,
  // of such a list
  arrayLimit: 50,
  allowDots: false,
  // objects without a prototype: no key is special
  plainObjects: true
} as const

/** Keys in brackets that the parser would drop, or take for the key 0. */
const LOST = /\[(__proto__)?\]/

/** Fastify's `querystringParser`. Deeper nesting stays a literal key, which closed schemas refuse. */
export function parseQuery (text: string): Record<string, unknown> {
  return text === '' ? {} : parse(text, { ...LIMITS, decoder })
}

/** Without its last bracket such a key stays, as one that no tag has. */
function decoder (text: string, decode: (text: string, decoder?: undefined, charset?: string) => string, charset: string, type: 'key' | 'value'): string {
  const decoded = decode(text, undefined, charset)
  return type === 'key' ? decoded.replace(LOST, '[$1') : decoded
}
