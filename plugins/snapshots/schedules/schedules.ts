// The schedules as their users see them: at most one for each instance.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import type { SetSchedule } from '../schemas.ts'
import type { ScheduleRecord } from './record.ts'
import type { ScheduleRepository } from './repository.ts'
import { firstRun } from './times.ts'
import { durationOf, settingsOf } from './validate.ts'

/** `ref` may also be the id of a deleted instance whose scheduled snapshots are still kept. @throws not_found */
export async function getSchedule (context: Context, schedules: ScheduleRepository, ref: string): Promise<ScheduleRecord> {
  const schedule = await schedules.find(instanceIdOf(context, ref))
  if (schedule === undefined) throw NotFound('snapshot schedule of instance', ref)
  return schedule
}

/** Makes a schedule, or replaces all of its settings. Its next run stays where it is unless the interval changes. */
export async function setSchedule (context: Context, schedules: ScheduleRepository, ref: string, body: SetSchedule): Promise<ScheduleRecord> {
  const { copies, locks, clock } = context
  const settings = settingsOf(body)
  const { id: instanceId } = copies.findOwn('snapshot-schedule', ref)
  return await locks.hold(`schedule ${instanceId}`, async () => {
    const now = clock.now()
    const first = firstRun(now, durationOf(settings.interval), clock.random())
    const before = await schedules.find(instanceId)
    if (before === undefined) {
      const made = { instanceId, ...settings, nextRunAt: first, lastRunAt: null, lastSnapshotId: null, lastError: null, createdAt: now, updatedAt: now }
      await schedules.insert(made)
      return made
    }
    const cadence = durationOf(before.interval) === durationOf(settings.interval) ? 'same' : 'new'
    await schedules.configure({ ...before, ...settings, nextRunAt: first, updatedAt: now }, cadence)
    return await getSchedule(context, schedules, instanceId)
  })
}

/** Removes the schedule; its snapshots stay. @throws not_found */
export async function removeSchedule (context: Context, schedules: ScheduleRepository, ref: string): Promise<void> {
  if (!await schedules.remove(instanceIdOf(context, ref))) throw NotFound('snapshot schedule of instance', ref)
}

function instanceIdOf ({ copies }: Context, ref: string): string {
  try {
    return copies.find(ref).id
  } catch (error) {
    if (NotFound.is(error)) return ref
    throw error
  }
}
