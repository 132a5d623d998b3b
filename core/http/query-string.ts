// Reads query strings, with `tags[team]=backend` as nested values and limits on what a stranger can make of it.
import { parse } from 'qs'

const LIMITS = {
  depth: 1,
  parameterLimit: 200,
  arrayLimit: 50,
  allowDots: false,
  // objects without a prototype: no key is special, and none is dropped
  plainObjects: true
} as const

/** Fastify's `querystringParser`. Deeper nesting stays a literal key, which closed schemas refuse. */
export function parseQuery (text: string): Record<string, unknown> {
  return text === '' ? {} : parse(text, LIMITS)
}
