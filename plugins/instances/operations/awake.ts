// Waits until guests are awake. Only then the rest of the image that a guest was started on is removed: until the guest is woken, the image says which identity it must be told.
import { setTimeout as sleep } from 'node:timers/promises'
import { pathsIn, type Context } from '../context.ts'
import { dropImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'

/** How long a restore waits for the guest before it answers with `Initializing`. */
const AWAKE_WAIT_MS = 5000

/**
 * Returns when the guest is awake, its VM has ended, or a while has passed. The instance's lock is held.
 * @param proven resolves when the kept copy of the image may be removed as well
 */
export async function awaitAwake (context: Context, instance: LiveInstance, session: GuestSession, proven?: Promise<void>): Promise<void> {
  const late = new AbortController()
  const ended = session.ended.then(() => false)
  const timeout = sleep(AWAKE_WAIT_MS, false, { signal: late.signal, ref: false }).catch(() => false)
  const isAwake = await Promise.race([session.awake.then(() => true), ended, timeout])
  late.abort()
  if (isAwake && proven === undefined) await dropImage(pathsIn(context, instance.id))
  else dropWhenAwake(context, instance, session, proven)
}

/** The same without waiting, and without the lock. */
export function dropWhenAwake (context: Context, instance: LiveInstance, session: GuestSession, proven?: Promise<void>): void {
  const drop = async (): Promise<void> => {
    await proven
    // This is left to the next server.
    if (context.closing.signal.aborted) return
    await context.locks.hold(instance.id, async () => {
      // Another image may have been made by now.
      if (instance.session === session) await dropImage(pathsIn(context, instance.id))
    })
  }
  session.awake.then(drop).catch((error: unknown) => {
    context.log.warn({ err: error, instance: instance.id }, 'the rest of a memory image could not be removed')
  })
}
