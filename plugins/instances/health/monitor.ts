// Probes instances that run, one probe of each at a time. What is found is shown with the instance; nothing of it is stored.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { endUnhealthy } from '../restart/supervise.ts'
import { probed, unknownHealth } from './check.ts'
import type { Monitor } from './contract.ts'
import { probe } from './probe.ts'

/** To be called when the instance's state or check may have changed. */
export function watchHealth (context: Context, instance: LiveInstance): void {
  const { deleted, session, record: { spec }, state } = instance
  const before = context.monitors.get(instance.id)
  const check = deleted ? undefined : spec.healthCheck
  // Paused is a moment of a fork or a snapshot, after which the instance goes on.
  const isOn = check !== undefined && session !== undefined && (state === 'Running' || (state === 'Paused' && before !== undefined))
  if (isOn && before?.session === session && before.check === check) return
  before?.stop.abort()
  context.monitors.delete(instance.id)
  if (!isOn) return instance.setHealth(check === undefined ? undefined : unknownHealth(instance.health))
  const monitor = { session, check, stop: new AbortController() }
  context.monitors.set(instance.id, monitor)
  observe(context, instance, monitor).catch((error: unknown) => {
    context.log.error({ err: error, instance: instance.id }, 'the health of an instance is not checked any more')
    // So that the next change of its state or check begins anew.
    if (context.monitors.get(instance.id) === monitor) context.monitors.delete(instance.id)
  })
}

async function observe (context: Context, instance: LiveInstance, { session, check, stop: { signal } }: Monitor): Promise<void> {
  // When the server has just started, the program may have run for long already.
  const { runningAt } = instance.record
  const graceUntil = performance.now() + check.startPeriodMs - (runningAt === null ? 0 : Math.max(0, Date.now() - runningAt))
  instance.setHealth(unknownHealth(instance.health, 'starting'))
  while (!signal.aborted && !context.closing.signal.aborted) {
    if (instance.state === 'Running' && !session.isResting) {
      const { rests } = session
      const error = await probe(session, check, addressOf(context, instance), signal)
      if (signal.aborted || context.closing.signal.aborted) return
      // A guest that was put to sleep during the probe had no chance to answer.
      if (instance.state === 'Running' && rests === session.rests) {
        instance.setHealth(probed(instance.health ?? unknownHealth(undefined, 'starting'), check, error, performance.now() < graceUntil, Date.now()))
      }
    }
    if (instance.health?.status === 'unhealthy') {
      await giveUp(context, instance, session, signal).catch((error: unknown) => {
        context.log.error({ err: error, instance: instance.id }, 'an unhealthy instance could not be left to its restart policy; it is tried again after the next probe')
      })
    }
    await pause(check.intervalMs, signal)
  }
}

function addressOf ({ network }: Context, { id, record: { spec } }: LiveInstance): string | undefined {
  return spec.network?.enabled === true ? network?.addressOf(id)?.ip : undefined
}

/** Leaves the instance to its restart policy, if it has one. */
async function giveUp (context: Context, instance: LiveInstance, session: GuestSession, signal: AbortSignal): Promise<void> {
  await context.locks.hold(instance.id, async () => {
    if (signal.aborted || context.closing.signal.aborted || instance.deleted || instance.session !== session || instance.state !== 'Running' || instance.health?.status !== 'unhealthy') return
    await endUnhealthy(context, instance)
  })
}
