// An event, in its stored and its sent form.
import type { ChangeAction, ResourceState } from '../../../core/db/changes.ts'

export interface StoredEvent {
  readonly id: number
  readonly resource: string
  readonly action: ChangeAction | 'progress'
  /** the scope that a key needs to read it */
  readonly scope: string
  readonly state: ResourceState
}

const MICROSECONDS = 1000

/** Ids are times, so that they grow over restarts, and over a database that was restored from a backup. */
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
