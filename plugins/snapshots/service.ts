// What the routes call: one function per request.
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { believableClock } from '../../core/steady-clock.ts'
import type { CopyRequest, ForkRequest } from '../instances/contract.ts'
import type { Context } from './context.ts'
import { create, type NewSnapshot } from './operations/create.ts'
import { remove } from './operations/delete.ts'
import { fork } from './operations/fork.ts'
import { recover } from './operations/recover.ts'
import { restore } from './operations/restore.ts'
import type { SnapshotRecord } from './record.ts'
import type { Repetition } from './clock.ts'
import type { ScheduleRecord } from './schedules/record.ts'
import type { ScheduleRepository } from './schedules/repository.ts'
import { createScheduleRunner } from './schedules/runner.ts'
import { getSchedule, removeSchedule, setSchedule } from './schedules/schedules.ts'
import type { ListSnapshotsQuery, SetSchedule } from './schemas.ts'
import { sourceOf } from './sources.ts'

/** The snapshots that a caller asks for. @param source id or name of the instance that they are of */
export type WantedSnapshots = Omit<ListSnapshotsQuery, 'source_instance_id'> & { readonly source?: string }

export interface Snapshots {
  open (): Promise<void>
  close (): Promise<void>
  create (instanceRef: string, wanted: NewSnapshot): Promise<SnapshotRecord>
  /** @throws invalid_request, ambiguous */
  list (wanted: WantedSnapshots): Promise<Found<SnapshotRecord>>
  /** By id, or the beginning of one. @throws not_found, ambiguous */
  get (ref: string): Promise<SnapshotRecord>
  delete (ref: string): Promise<void>
  /** The new instance, as the API shows it. */
  fork (ref: string, request: ForkRequest): Promise<unknown>
  /** The instance, as the API shows it. */
  restore (instanceRef: string, ref: string, request: CopyRequest): Promise<unknown>
  schedule (instanceRef: string): Promise<ScheduleRecord>
  setSchedule (instanceRef: string, body: SetSchedule): Promise<ScheduleRecord>
  deleteSchedule (instanceRef: string): Promise<void>
}

export function createSnapshots (context: Context, schedules: ScheduleRepository, checkIntervalMs: number): Snapshots {
  const { repository } = context
  const find = async (ref: string): Promise<SnapshotRecord> => await lookupStored(repository, ref, { what: 'snapshot' })
  let isBelievable = (): boolean => false
  const runner = createScheduleRunner(context, schedules, () => isBelievable())
  let checks: Repetition | undefined
  return {
    async open () {
      await recover(context)
      isBelievable = believableClock(context.clock)
      checks = context.clock.every(checkIntervalMs, async () => { await runner.run() })
    },
    async close () {
      context.closing.abort()
      await checks?.stop()
      await context.compressor.close()
    },
    create: async (instanceRef, wanted) => await create(context, instanceRef, wanted),
    async list ({ name, kind, source, tags, ...page }) {
      const sourceId = source === undefined ? undefined : await sourceOf(repository, source, (ref) => context.copies.find(ref))
      if (source !== undefined && sourceId === undefined) return { items: [], hasMore: false }
      return await repository.page({
        ...name === undefined ? {} : { name }, ...kind === undefined ? {} : { kind }, ...sourceId === undefined ? {} : { sourceId }, ...tags === undefined ? {} : { tags }
      }, wantedPage(page))
    },
    get: find,
    delete: async (ref) => { await remove(context, (await find(ref)).id) },
    fork: async (ref, request) => await fork(context, (await find(ref)).id, request),
    restore: async (instanceRef, ref, request) => await restore(context, instanceRef, (await find(ref)).id, request),
    schedule: async (instanceRef) => await getSchedule(context, schedules, instanceRef),
    async setSchedule (instanceRef, body) {
      const schedule = await setSchedule(context, schedules, instanceRef, body)
      runner.changed(schedule.instanceId)
      return schedule
    },
    deleteSchedule: async (instanceRef) => { await removeSchedule(context, schedules, instanceRef) }
  }
}
