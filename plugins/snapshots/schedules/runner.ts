// Takes the snapshots that are due and removes those that have had their time.
import { NotFound } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import type { CopyKind, InstanceFacts, InstanceState } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import { create } from '../operations/create.ts'
import { remove } from '../operations/delete.ts'
import type { SnapshotRecord } from '../record.ts'
import type { ScheduleRecord } from './record.ts'
import type { ScheduleRepository } from './repository.ts'
import { isOutOfReach, nextRun, snapshotName } from './times.ts'
import { durationOf } from './validate.ts'

/** The tag by which everybody can tell a scheduled snapshot. What retention goes by is the row, since tags are free. */
export const SCHEDULED_TAG = 'berth.scheduled'

const KIND_BY_STATE: Partial<Record<InstanceState, CopyKind>> = { Running: 'Standby', Standby: 'Standby', Stopped: 'Stopped' }

/** Goes once through all schedules of this host, one after the other: captures side by side would slow each other down. Never rejects. */
export async function runSchedules (context: Context, schedules: ScheduleRepository, isSteady: () => boolean): Promise<void> {
  const isAgeKnown = isSteady()
  await guarded(context, {}, async () => {
    for (const schedule of await schedules.all()) {
      await guarded(context, { instance: schedule.instanceId }, async () => { await runIfDue(context, schedules, schedule) })
    }
    for (const schedule of await schedules.all()) {
      await guarded(context, { instance: schedule.instanceId }, async () => {
        await retire(context, schedules, schedule, await context.repository.scheduledOf(schedule.instanceId), isAgeKnown)
      })
    }
  })
}

async function runIfDue (context: Context, schedules: ScheduleRepository, schedule: ScheduleRecord): Promise<void> {
  const now = context.clock.now()
  const intervalMs = durationOf(schedule.interval)
  if (isOutOfReach(schedule.nextRunAt, intervalMs, now)) return await schedules.move(schedule, now + intervalMs)
  if (schedule.nextRunAt > now) return
  const source = sourceOf(context, schedule)
  // It stays for the retention of its snapshots alone.
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

/** @param own the scheduled snapshots of that instance, oldest first */
async function retire (context: Context, schedules: ScheduleRepository, schedule: ScheduleRecord, own: readonly SnapshotRecord[], isAgeKnown: boolean): Promise<void> {
  const { maxCount, maxAge, instanceId } = schedule
  const surplus = maxCount === null || maxCount === 0 ? 0 : Math.max(0, own.length - maxCount)
  const oldest = maxAge === null || !isAgeKnown ? -Infinity : context.clock.now() - durationOf(maxAge)
  const past = own.filter(({ createdAt }, index) => index < surplus || createdAt < oldest)
  for (const { id } of past) await removeIfThere(context, id)
  // Without an age nothing will ever change again.
  if (sourceOf(context, schedule) === undefined && (past.length === own.length || maxAge === null)) await schedules.remove(instanceId)
}

/** The instance, unless it is gone. */
function sourceOf ({ copies }: Context, { instanceId }: ScheduleRecord): InstanceFacts | undefined {
  try {
    const facts = copies.find(instanceId)
    // Another instance could have the id of one that is gone as its name.
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
    // A user was quicker.
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
