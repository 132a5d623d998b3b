// Reads query strings, with `tags[team]=backend` as nested values and limits on what a stranger can make of it.
import type { onRequestHookHandler } from 'fastify'
import { parse } from 'qs'
import { InvalidRequest } from '../errors/common.ts'

const MOST_PARAMETERS = 200
const LIMITS = {
  depth: 1,
  // of which the parser would leave out the rest without a word
  parameterLimit: MOST_PARAMETERS,
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

/** what is parsed of a query with more parameters: the router may be thrown nothing */
const TOO_MANY: Readonly<Record<string, unknown>> = Object.freeze({})

/** Fastify's `querystringParser`. Deeper nesting stays a literal key, which closed schemas refuse. */
export function parseQuery (text: string): Record<string, unknown> {
  if (text === '') return {}
  const parameters = text.split('&').filter((parameter) => parameter !== '')
  return parameters.length > MOST_PARAMETERS ? TOO_MANY : parse(parameters.join('&'), { ...LIMITS, decoder })
}

/** Refuses a query with more parameters than are parsed: without some of them it would ask for something else. */
export const refuseLongQuery: onRequestHookHandler = (request, _reply, done) => {
  done(request.query === TOO_MANY ? InvalidRequest(`the query must have at most ${MOST_PARAMETERS} parameters`) : undefined)
}

/** Without its last bracket such a key stays, as one that no tag has. */
function decoder (text: string, decode: (text: string, decoder?: undefined, charset?: string) => string, charset: string, type: 'key' | 'value'): string {
  const decoded = decode(text, undefined, charset)
  return type === 'key' ? decoded.replace(LOST, '[$1') : decoded
}
