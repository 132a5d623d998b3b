// Which events somebody wants, and may have.
import { Type, type Static, type TObject } from 'typebox'
import { matchesTags, TagsQuery } from '../../../core/http/list.ts'
import type { ResourceState } from '../../../core/db/changes.ts'
import { UnknownResource } from '../errors.ts'

export const EventFilter = {
  resource: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: '^[a-z]+(,[a-z]+)*$', rule: 'must be one or more kinds of resources, separated by commas', description: 'Only these kinds, separated by commas: `instance,image`' })),
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 1300, description: 'Only of resources with this id or name, or whose id begins so' })),
  tags: TagsQuery.tags
}

export type EventFilter = Static<TObject<typeof EventFilter>>

export interface Seen {
  readonly resource: string
  readonly scope: string
  readonly state: ResourceState
}
export type Wants = (event: Seen) => boolean

/** @param may whether a scope is the caller's */
export function wantsOf ({ resource, id, tags }: EventFilter, may: (scope: string) => boolean): Wants {
  const resources = resource === undefined ? undefined : new Set(resource.split(','))
  return (event) => {
    if (resources !== undefined && !resources.has(event.resource)) return false
    if (id !== undefined && event.state.id !== id && event.state.name !== id && !event.state.id.startsWith(id)) return false
    return matchesTags(event.state.tags, tags) && may(event.scope)
  }
}

/** @throws invalid_request for a kind that nobody has */
export function checkFilter ({ resource }: EventFilter, known: readonly string[]): void {
  const wrong = resource?.split(',').find((each) => !known.includes(each))
  if (wrong !== undefined) throw UnknownResource(wrong, known)
}
