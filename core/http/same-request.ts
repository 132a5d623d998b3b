// What makes two requests the same one: who sends what where.
import { createHmac } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { durableIdOf } from '../auth/durable-id.ts'

/** Who sends a request, and where to. */
export function placeOf ({ principal, method, url }: FastifyRequest): string {
  const [path = ''] = url.split('?', 1)
  return [principal === null ? '' : durableIdOf(principal), method, path].join('\0')
}

/**
 * The hash of what a request asks for, which stands in its body, or in its query when the body is a stream.
 * @param key of an HMAC, since a body may hold a password that could be guessed from a plain hash
 */
export function contentHashOf ({ query, body }: FastifyRequest, key: string | Buffer): string {
  // Without a query it is what it always was: remembered answers outlive an upgrade.
  const asked = JSON.stringify(sorted(query)) ?? ''
  return createHmac('sha256', key).update(JSON.stringify(sorted(body)) ?? '').update(asked === '{}' ? '' : `\0${asked}`).digest('hex')
}

// The same object with its keys in another order is the same request.
function sorted (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, item]) => [key, sorted(item)]))
}
