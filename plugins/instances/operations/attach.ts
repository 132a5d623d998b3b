// Ties a VM to its instance: what happens to the one is seen in the other, and its end is settled once.
import { pathsIn, type Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { settle } from './settle.ts'

/** From here on the instance's state is what this VM does. */
export function attach (context: Context, instance: LiveInstance, session: GuestSession): void {
  instance.setSession(session)
  const noteStart = (): void => {
    if (session.program !== 'started' || instance.record.runningAt !== null) return
    // Stored so that a later server knows at once, without asking the guest. Losing it costs one question.
    instance.save({ runningAt: Date.now() }).catch((error: unknown) => {
      context.log.warn({ err: error, instance: instance.id }, 'the start of a program could not be stored')
    })
  }
  session.listen({
    changed () {
      noteStart()
      instance.refresh()
    },
    gone () {
      instance.refresh()
      instance.settling ??= settle(context, instance, session, pathsIn(context, instance.id))
    }
  })
  noteStart()
  instance.refresh()
}
