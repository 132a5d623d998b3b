// Paging and tag filters, the same on every list.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { InvalidRequest } from '../errors/common.ts'

/** Query fields of a list, to be spread into the route's query object. */
export const ListQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'At most this many items, 1000 at most; all when absent' })),
  after: Type.Optional(Type.String({ minLength: 1, maxLength: 512, description: 'The id of the item after which the list goes on' }))
}

/** Query field of a list that can be filtered by tags: `?tags[team]=backend&tags[env]=prod`; all must match. */
export const TagsQuery = {
  tags: Type.Optional(Type.Unsafe<Record<string, string>>({
    type: 'object',
    maxProperties: 50,
    additionalProperties: { type: 'string' },
    description: 'Only items that have all these tags'
  }))
}

export interface Page { readonly limit?: number, readonly after?: string }

/**
 * Cuts one page out of items that are already filtered and ordered, and sets `Link: <…>; rel="next"` when more follow.
 * An `after` that is not in the list is refused: going on from an unknown place would skip or repeat items silently.
 */
export function paginate<T> (items: readonly T[], query: Page, idOf: (item: T) => string, request: FastifyRequest, reply: FastifyReply): T[] {
  let from = 0
  if (query.after !== undefined) {
    from = items.findIndex((item) => idOf(item) === query.after) + 1
    if (from === 0) throw InvalidRequest(`query parameter after: no item of this list has the id ${query.after}`)
  }
  if (query.limit === undefined) return items.slice(from)
  const page = items.slice(from, from + query.limit)
  const last = page.at(-1)
  if (last !== undefined && from + page.length < items.length) {
    reply.header('link', `<${nextUrl(request.url, idOf(last))}>; rel="next"`)
  }
  return page
}

/** Whether `tags` holds every wanted pair. */
export function matchesTags (tags: Readonly<Record<string, string>> | null | undefined, wanted: Readonly<Record<string, string>> | undefined): boolean {
  if (wanted === undefined) return true
  return Object.entries(wanted).every(([key, value]) => tags != null && Object.hasOwn(tags, key) && tags[key] === value)
}

// A relative reference: the server need not know under which name a client reached it.
function nextUrl (url: string, after: string): string {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1))
  query.set('after', after)
  return `${path}?${query.toString()}`
}
