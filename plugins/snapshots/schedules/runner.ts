// Takes the snapshots that are due, and removes those whose retention is over.
import { NotFound } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import type { CopyKind, InstanceFacts, InstanceState } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import { create } from '../operations/create.ts'
import { remove } from '../operations/delete.ts'
import type { SnapshotRecord } from '../record.ts'
import { createAgenda } from './agenda.ts'
import type { ScheduleRecord } from './record.ts'
import type { ScheduleRepository } from './repository.ts'
import { isOutOfReach, nextRun, snapshotName } from './times.ts'
import { durationOf } from './validate.ts'

/** The tag by which everybody can recognise a scheduled snapshot. Retention looks at the row instead, since anybody may set tags. */
const SCHEDULED_TAG = 'berth.scheduled'

/** a clock that is corrected a little all the time does not count as put back */
const PUT_BACK_MS = 1000

const KIND_BY_STATE: Partial<Record<InstanceState, CopyKind>> = { Running: 'Standby', Standby: 'Standby', Stopped: 'Stopped' }

export interface ScheduleRunner {
  /** Takes and removes what is due on this host, one after the other: captures at the same time would slow each other down. Never rejects. */
  run (): Promise<void>
  /** To be called when the schedule of an instance was changed or removed. */
  changed (instanceId: string): void
}

/** @param isSteady whether the clock can be believed when it makes something old */
export function createScheduleRunner (context: Context, schedules: ScheduleRepository, isSteady: () => boolean): ScheduleRunner {
  const agenda = createAgenda()
  const isPutBack = putBack(context.clock)
  /** The first look, and a look after the clock was put back, covers all schedules: otherwise a run that is planned for later than it should be is never seen. */
  let isWhole = true

  async function look (instanceId: string, isAgeKnown: boolean): Promise<void> {
    agenda.forget(instanceId)
    try {
      const next = await retire(context, schedules, instanceId, isAgeKnown)
      if (next !== undefined) agenda.later(instanceId, next)
    } catch (error) {
      agenda.soon(instanceId)
      throw error
    }
  }

  return {
    async run () {
      const isAgeKnown = isSteady()
      isWhole = isPutBack() || isWhole
      await guarded(context, {}, async () => {
        const found = isWhole ? await schedules.all() : await schedules.due(context.clock.now())
        isWhole = false
        for (const { instanceId } of found) agenda.soon(instanceId)
        for (const schedule of found) await guarded(context, { instance: schedule.instanceId }, async () => { await runIfDue(context, schedules, schedule) })
        for (const instanceId of agenda.due(context.clock.now(), isAgeKnown, (id) => sourceOf(context, id) === undefined)) {
          await guarded(context, { instance: instanceId }, async () => { await look(instanceId, isAgeKnown) })
        }
      })
    },
    changed (instanceId) {
      agenda.soon(instanceId)
    }
  }
}

/** Makes the function that says whether the clock was put back since its last call. */
function putBack (clock: Context['clock']): () => boolean {
  const offsetOf = (): number => clock.now() - clock.elapsed()
  let furthest = offsetOf()
  return () => {
    const offset = offsetOf()
    const isBack = furthest - offset > PUT_BACK_MS
    furthest = isBack ? offset : Math.max(furthest, offset)
    return isBack
  }
}

async function runIfDue (context: Context, schedules: ScheduleRepository, schedule: ScheduleRecord): Promise<void> {
  const now = context.clock.now()
  const intervalMs = durationOf(schedule.interval)
  if (isOutOfReach(schedule.nextRunAt, intervalMs, now)) return await schedules.move(schedule, now + intervalMs)
  if (schedule.nextRunAt > now) return
  const source = sourceOf(context, schedule.instanceId)
  // The schedule of a deleted instance stays only for the retention of its snapshots.
  if (source === undefined) return
  const next = nextRun(schedule.nextRunAt, intervalMs, now)
  if (!await schedules.claim(schedule, next, now)) return
  const kind = KIND_BY_STATE[source.state]
  if (kind === undefined) {
    return await schedules.noteError(source.id, `skipped: the instance was ${source.state}, and a snapshot needs it Running, in Standby or Stopped`)
  }
  try {
    const { id } = await create(context, source.id, {
      kind, name: snapshotName(schedule.namePrefix, now), tags: { ...schedule.metadata, [SCHEDULED_TAG]: 'true' }, scheduled: true
    })
    await schedules.noteSnapshot(source.id, id)
  } catch (error) {
    context.log.warn({ err: error, instance: source.id }, 'a scheduled snapshot could not be taken')
    await schedules.noteError(source.id, error instanceof BerthError && error.kind !== 'internal' ? error.message : 'the snapshot failed; the log of the server says why')
  }
}

/** Removes the snapshots whose retention is over. Returns when there will be more of them, epoch ms; `undefined` when there is no schedule any more. */
async function retire (context: Context, schedules: ScheduleRepository, instanceId: string, isAgeKnown: boolean): Promise<number | undefined> {
  const schedule = await schedules.find(instanceId)
  if (schedule === undefined) return undefined
  const { maxCount, maxAge } = schedule
  const own = await context.repository.scheduledOf(instanceId)
  const surplus = maxCount === null || maxCount === 0 ? 0 : Math.max(0, own.length - maxCount)
  const ageMs = maxAge === null ? Infinity : durationOf(maxAge)
  const now = context.clock.now()
  const oldest = isAgeKnown ? now - ageMs : -Infinity
  // What says that it was made later than now, was made while the clock was ahead: it is too old once one that was made after it is. Of the others each goes by its own time; one that was made while the clock was behind must take none with it.
  const lastOld = own.findLastIndex(({ createdAt }) => createdAt < oldest)
  const isPast = ({ createdAt }: SnapshotRecord, index: number): boolean => index < surplus || createdAt < oldest || (createdAt > now && index < lastOld)
  for (const { id } of own.filter(isPast)) await removeIfThere(context, id)
  const kept = own.filter((snapshot, index) => !isPast(snapshot, index))
  // Without `max_age` nothing will ever change again.
  if (sourceOf(context, instanceId) === undefined && (kept.length === 0 || maxAge === null)) {
    await schedules.remove(instanceId)
    return undefined
  }
  return kept.reduce((soonest, { createdAt }) => Math.min(soonest, createdAt + ageMs), Infinity)
}

/** The instance, unless it is gone. */
function sourceOf ({ copies }: Context, instanceId: string): InstanceFacts | undefined {
  try {
    const facts = copies.find(instanceId)
    // The name of another instance may be the id of a deleted one.
    return facts.id === instanceId ? facts : undefined
  } catch (error) {
    if (NotFound.is(error)) return undefined
    throw error
  }
}

async function removeIfThere (context: Context, id: string): Promise<void> {
  try {
    await remove(context, id)
  } catch (error) {
    // A user has deleted it first.
    if (!NotFound.is(error)) throw error
  }
}

async function guarded ({ log }: Context, place: { instance?: string }, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.error({ err: error, ...place }, 'a snapshot schedule failed')
  }
}
