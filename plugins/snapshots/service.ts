// What the routes call: one function per request.
import { NotFound } from '../../core/errors/common.ts'
import type { Context } from './context.ts'
import { create, type NewSnapshot } from './operations/create.ts'
import { remove } from './operations/delete.ts'
import { recover } from './operations/recover.ts'
import { fork, restore, type Target } from './operations/use.ts'
import type { SnapshotRecord } from './record.ts'
import type { Repetition } from './clock.ts'
import type { ScheduleRecord } from './schedules/record.ts'
import type { ScheduleRepository } from './schedules/repository.ts'
import { runSchedules } from './schedules/runner.ts'
import { getSchedule, removeSchedule, setSchedule } from './schedules/schedules.ts'
import type { SetSchedule } from './schemas.ts'

export interface Snapshots {
  open (): Promise<void>
  close (): Promise<void>
  create (instanceRef: string, wanted: NewSnapshot): Promise<SnapshotRecord>
  /** Oldest first. */
  all (): Promise<SnapshotRecord[]>
  get (id: string): Promise<SnapshotRecord>
  delete (id: string): Promise<void>
  /** The new instance, as the API shows it. */
  fork (id: string, body: Target & { readonly name: string }): Promise<unknown>
  /** The instance, as the API shows it. */
  restore (instanceRef: string, id: string, body: Target): Promise<unknown>
  schedule (instanceRef: string): Promise<ScheduleRecord>
  setSchedule (instanceRef: string, body: SetSchedule): Promise<ScheduleRecord>
  deleteSchedule (instanceRef: string): Promise<void>
}

export function createSnapshots (context: Context, schedules: ScheduleRepository, checkIntervalMs: number): Snapshots {
  let checks: Repetition | undefined
  return {
    async open () {
      await recover(context)
      checks = context.clock.every(checkIntervalMs, async () => { await runSchedules(context, schedules) })
    },
    async close () {
      await checks?.stop()
      await context.compressor.close()
    },
    create: async (instanceRef, wanted) => await create(context, instanceRef, wanted),
    all: async () => await context.repository.ready(),
    async get (id) {
      const snapshot = await context.repository.find(id)
      if (snapshot?.status !== 'ready') throw NotFound('snapshot', id)
      return snapshot
    },
    delete: async (id) => { await remove(context, id) },
    fork: async (id, body) => await fork(context, id, body),
    restore: async (instanceRef, id, body) => await restore(context, instanceRef, id, body),
    schedule: async (instanceRef) => await getSchedule(context, schedules, instanceRef),
    setSchedule: async (instanceRef, body) => await setSchedule(context, schedules, instanceRef, body),
    deleteSchedule: async (instanceRef) => { await removeSchedule(context, schedules, instanceRef) }
  }
}
