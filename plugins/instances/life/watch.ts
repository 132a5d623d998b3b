// Begins all that happens by itself in the life of an instance.
import { sideBySide } from '../../../core/jobs/side-by-side.ts'
import type { Context } from '../context.ts'
import { adoptExpiry, watchExpiry } from '../expiry/watch.ts'
import { watchHealth } from '../health/monitor.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { adoptRestart, watchRestart } from '../restart/supervise.ts'

/** rows that may be changed at once */
const AT_ONCE = 64

/** For an instance that has just been made or taken over. */
export function watchLife (context: Context, instance: LiveInstance): void {
  watchExpiry(context, instance)
  watchRestart(context, instance)
  watchHealth(context, instance)
}

/** At the start of the server, once all instances are taken over. Returns the function that ends the watch. */
export async function adoptLives (context: Context): Promise<() => void> {
  const unsubscribe = context.events.on('instance.state', ({ id }) => {
    const instance = context.instances.known(id)
    if (instance === undefined) return
    watchRestart(context, instance)
    watchHealth(context, instance)
  })
  const results = await sideBySide(context.instances.all(), AT_ONCE, async (instance) => {
    await adoptExpiry(context, instance)
    adoptRestart(context, instance)
    watchHealth(context, instance)
  })
  for (const result of results) if (result.status === 'rejected') context.log.error({ err: result.reason }, 'the life of an instance could not be taken over')
  return unsubscribe
}
