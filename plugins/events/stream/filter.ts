// Which events a reader wants and may read.
import { Type, type Static, type TObject } from 'typebox'
import { matchesTags, TagsQuery } from '../../../core/http/list.ts'
import type { ResourceState } from '../../../core/db/changes.ts'
import type { Filter } from '../contract.ts'
import { UnknownResource } from '../errors.ts'

export const EventFilter = {
  resource: Type.Optional(Type.String({ minLength: 1, maxLength: 200, pattern: '^[a-z]+(,[a-z]+)*$', rule: 'must be one or more kinds of resources, separated by commas', description: 'Only these kinds, separated by commas: `instance,image`' })),
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 1300, description: 'Only of resources with this id or name, or whose id begins so' })),
  tags: TagsQuery.tags
}

export type EventFilter = Static<TObject<typeof EventFilter>>

/** The words of a query, as what is meant. */
export function filterOf ({ resource, id, tags }: EventFilter): Filter {
  return { ...resource === undefined ? {} : { resources: resource.split(',') }, ...id === undefined ? {} : { ids: [id] }, ...tags === undefined ? {} : { tags } }
}

export interface Seen {
  readonly resource: string
  readonly scope: string
  readonly state: ResourceState
}
export type Wants = (event: Seen) => boolean

/** @param may whether the caller has a scope */
export function wantsOf ({ resources, ids, tags }: Filter, may: (scope: string) => boolean): Wants {
  return (event) => {
    const { id, name, tags: own } = event.state
    if (resources !== undefined && !resources.includes(event.resource)) return false
    if (ids !== undefined && !ids.some((each) => name === each || id.startsWith(each))) return false
    return matchesTags(own, tags) && may(event.scope)
  }
}

/** @throws invalid_request for an unknown kind */
export function checkFilter ({ resources }: Filter, known: readonly string[]): void {
  const wrong = resources?.find((each) => !known.includes(each))
  if (wrong !== undefined) throw UnknownResource(wrong, known)
}
