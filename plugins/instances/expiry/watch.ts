// Deletes instances at their expiry, which the row has, so that a server that starts later does it too.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { hostClock, rebased } from '../life/moment.ts'
import { remove } from '../operations/delete.ts'
import { storeLater } from '../operations/store-later.ts'
import { msToLive } from './expiry.ts'

const RETRY_MS = 10_000

/** To be called whenever the expiry may have changed. */
export function watchExpiry (context: Context, instance: LiveInstance): void {
  const key = `expiry ${instance.id}`
  if (instance.record.life.expiry === undefined || instance.deleted) return context.alarms.clear(key)
  context.alarms.set(key, () => msToLiveOf(instance), () => {
    expire(context, instance).catch((error: unknown) => {
      context.log.error({ err: error, instance: instance.id }, 'an instance that has expired could not be deleted; it is tried again')
      const again = performance.now() + RETRY_MS
      context.alarms.set(key, () => again - performance.now(), () => { watchExpiry(context, instance) })
    })
  })
}

/** At the start of the server. After a boot of the host nothing but the clock tells the time; from then on the host's uptime does. */
export async function adoptExpiry (context: Context, instance: LiveInstance): Promise<void> {
  const { life } = instance.record
  if (life.expiry !== undefined) {
    const expiry = rebased(life.expiry, hostClock)
    if (expiry !== life.expiry) storeLater(context, instance, await instance.saveFact((record) => ({ life: { ...record.life, expiry } })), 'an expiry for this boot of the host')
  }
  watchExpiry(context, instance)
}

/** Infinity: it does not expire. */
export function msToLiveOf ({ record: { life } }: LiveInstance): number {
  return life.expiry === undefined ? Infinity : msToLive(life.expiry)
}

async function expire (context: Context, instance: LiveInstance): Promise<void> {
  await context.locks.hold(instance.id, async () => {
    if (instance.deleted || context.closing.signal.aborted) return
    // The expiry was changed meanwhile.
    if (msToLiveOf(instance) > 0) return watchExpiry(context, instance)
    await context.metrics.timed('delete', async () => { await remove(context, instance, context.settings.deleteGraceMs) })
    context.log.info({ instance: instance.id, name: instance.name }, 'deleted an instance that has expired')
  })
}
