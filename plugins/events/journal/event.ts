// An event, as it is stored and as it is sent.
import type { ChangeAction, ResourceState } from '../../../core/db/changes.ts'

export interface StoredEvent {
  readonly id: number
  readonly resource: string
  readonly action: ChangeAction | 'progress'
  /** what a key needs to read it */
  readonly scope: string
  readonly state: ResourceState
}

const MICROSECONDS = 1000

/** Ids are times, so that they grow over restarts, and over a database that was brought back from a copy. */
export function idAt (epochMs: number): number {
  return Math.floor(epochMs) * MICROSECONDS
}

export function timeOf (id: number): string {
  return new Date(Math.floor(id / MICROSECONDS)).toISOString()
}

/** The body of an event, in the stream and in a webhook. */
export function bodyOf ({ id, resource, action, state: { details, ...state } }: StoredEvent): string {
  return JSON.stringify({
    type: `${resource}.${action}`,
    ...action === 'progress' ? {} : { id: String(id) },
    timestamp: timeOf(id),
    data: { resource, ...state, ...details }
  })
}
