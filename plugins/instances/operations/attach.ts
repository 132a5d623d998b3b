// Ties a VM to its instance: changes of the VM are seen in the instance, and the VM's end is settled once.
import { pathsIn, type Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { settle } from './settle.ts'
import { storeLater } from './store-later.ts'

/** From here on the instance's state follows this VM. */
export function attach (context: Context, instance: LiveInstance, session: GuestSession): void {
  instance.setSession(session)
  const noteStart = (): void => {
    if (session.program !== 'started' || instance.record.runningAt !== null) return
    // Stored so that a later server knows it at once, without asking the guest. When this is lost, that server has to ask.
    void instance.saveFact({ runningAt: Date.now() }).then((failure) => { storeLater(context, instance, failure, 'the start of a program') })
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
