// All that goes on by itself in the life of an instance.
import type { Context } from '../context.ts'
import { adoptExpiry, watchExpiry } from '../expiry/watch.ts'
import type { LiveInstance } from '../live-instance.ts'

/** For an instance that has just become known. */
export function watchLife (context: Context, instance: LiveInstance): void {
  watchExpiry(context, instance)
}

/** At the start of the server, once all instances are taken over. */
export async function adoptLives (context: Context): Promise<void> {
  const results = await Promise.allSettled(context.instances.all().map(async (instance) => {
    await adoptExpiry(context, instance)
  }))
  for (const result of results) if (result.status === 'rejected') context.log.error({ err: result.reason }, 'the life of an instance could not be taken over')
}
