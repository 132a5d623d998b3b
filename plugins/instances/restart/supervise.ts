// Starts instances again whose programs have ended by themselves. Every decision is stored before it is carried out, so that after a crash the next server goes on with it:
// a stop by hand is finished, an attempt that was begun counts, and the wait for a planned attempt goes on.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { hostClock, momentIn, msUntil } from '../life/moment.ts'
import { logOperation } from '../folder/operations-log.ts'
import { start } from '../operations/start.ts'
import { leaving } from '../operations/leaving.ts'
import { endVm } from '../operations/stop.ts'
import { doLater } from '../parts/later.ts'
import { pathsIn } from '../context.ts'
import { judge, NO_RESTARTS, type RestartState } from './policy.ts'

/** How long a server that has just started waits for a guest that was to be stopped. */
const GUEST_WAIT_MS = 5000

const isSupervised = ({ deleted, record: { spec } }: LiveInstance): boolean => !deleted && spec.restartPolicy !== undefined && spec.restartPolicy.policy !== 'never'

/** To be called when the instance's state or policy may have changed. */
export function watchRestart (context: Context, instance: LiveInstance): void {
  const key = keyOf(instance)
  context.alarms.clear(key)
  if (!isSupervised(instance)) return
  const { record: { life, spec }, state } = instance
  if (state === 'Stopped') return inBackground(context, instance, async () => { await plan(context, instance) })
  if (state !== 'Running' || (life.restart?.attempts ?? 0) === 0) return
  const stableAt = performance.now() + (spec.restartPolicy?.stableAfterMs ?? 0)
  context.alarms.set(key, () => stableAt - performance.now(), () => {
    inBackground(context, instance, async () => { if (instance.state === 'Running') await save(instance, { attempts: 0 }) })
  })
}

/** At the start of the server. */
export function adoptRestart (context: Context, instance: LiveInstance): void {
  if (isToEnd(instance)) return inBackground(context, instance, async () => { await decide(context, instance) })
  watchRestart(context, instance)
}

/** Whether it has a VM that somebody was about to end, under the lock that the caller holds. */
function isToEnd ({ session, record: { life: { restart } } }: LiveInstance): boolean {
  return session !== undefined && (restart?.blocked === 'manual_stop' || restart?.failed === true)
}

/** Goes on with whatever is stored. Needs the lock. */
async function decide (context: Context, instance: LiveInstance): Promise<void> {
  if (isToEnd(instance)) return await finishEnd(context, instance)
  if (instance.state === 'Stopped') return await plan(context, instance)
  watchRestart(context, instance)
}

async function finishEnd (context: Context, instance: LiveInstance): Promise<void> {
  await leaving(instance, async () => {
    await instance.session?.awaitLink(GUEST_WAIT_MS, context.closing.signal)
    if (context.closing.signal.aborted) return
    await logOperation(pathsIn(context, instance.id).operations, 'restart: ends the VM, as was begun before', context.log)
    await endVm(instance, context.settings.stopGraceMs)
  })
}

/** Ends the VM of an instance whose health check has failed; its policy starts it again. The lock of the instance is held. */
export async function endUnhealthy (context: Context, instance: LiveInstance): Promise<void> {
  if (!isSupervised(instance)) return
  await leaving(instance, async () => {
    await save(instance, { failed: true, lastReason: 'health_check_failed' })
    await logOperation(pathsIn(context, instance.id).operations, 'health check: failed, the VM is ended', context.log)
    await endVm(instance, context.settings.stopGraceMs)
  })
}

/** Decides what to do with an instance that is Stopped. Needs the lock. */
async function plan (context: Context, instance: LiveInstance): Promise<void> {
  if (instance.state !== 'Stopped' || !isSupervised(instance)) return
  const verdict = judge(instance.record)
  const { spec, life } = instance.record
  if (verdict.decision === 'rest') {
    if (life.restart?.next !== undefined) await save(instance, { next: undefined })
    return
  }
  if (verdict.decision === 'give-up') return await save(instance, { blocked: 'max_attempts_exceeded', next: undefined })
  const next = life.restart?.next ?? momentIn(spec.restartPolicy?.backoffMs ?? 0, hostClock)
  if (life.restart?.next === undefined || verdict.attempts !== life.restart.attempts) await save(instance, { attempts: verdict.attempts, next })
  context.alarms.set(keyOf(instance), () => msUntil(next, hostClock), () => { inBackground(context, instance, async () => { await attempt(context, instance) }) })
}

/** Needs the lock. */
async function attempt (context: Context, instance: LiveInstance): Promise<void> {
  const { restart = NO_RESTARTS } = instance.record.life
  // The instance was started, stopped or changed meanwhile.
  if (instance.state !== 'Stopped' || restart.next === undefined || judge(instance.record).decision !== 'restart') return await plan(context, instance)
  if (msUntil(restart.next, hostClock) > 0) return await plan(context, instance)
  await save(instance, { attempts: restart.attempts + 1, lastAttemptAt: Date.now(), next: undefined })
  const { operations } = pathsIn(context, instance.id)
  try {
    await context.metrics.timed('start', async () => { await start(context, instance, {}, { by: 'policy' }) })
    await logOperation(operations, `restart: attempt ${restart.attempts + 1}: done`, context.log)
  } catch (error) {
    context.log.warn({ err: error, instance: instance.id }, 'an instance could not be started again by its policy')
    await logOperation(operations, `restart: attempt ${restart.attempts + 1}: failed: ${error instanceof Error ? error.message : String(error)}`, context.log)
    await plan(context, instance)
  }
}

async function save (instance: LiveInstance, change: Partial<RestartState>): Promise<void> {
  await instance.save(({ life }) => ({ life: { ...life, restart: { ...NO_RESTARTS, ...life.restart, ...change } } }))
}

const keyOf = ({ id }: LiveInstance): string => `restart ${id}`

/** Does the work with the lock held, unless the instance is deleted or the server ends. When it fails, as it does while the database is away, it is decided anew what to do, until that is done. */
function inBackground (context: Context, instance: LiveInstance, work: () => Promise<void>): void {
  const isOver = (): boolean => instance.deleted || context.closing.signal.aborted
  context.locks.hold(instance.id, async () => { if (!isOver()) await work() }).catch((error: unknown) => {
    context.log.error({ err: error, instance: instance.id }, 'the restarts of an instance could not be supervised; it is tried again')
    doLater(context, 'restart', instance.id, async () => { if (!isOver()) await decide(context, instance) })
  })
}
