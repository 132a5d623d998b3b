// Waits until an instance whose program has ended is at rest: it can be started no sooner.
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { LiveInstance } from '../model/live-instance.ts'

/** Returns at once for one that is not on its way there. @throws the signal's reason when it aborts before that */
export async function awaitEnd (instance: LiveInstance, signal: AbortSignal): Promise<void> {
  if (instance.state !== 'Shutdown') return
  let unsubscribe = (): void => {}
  const left = new Promise<void>((resolve) => {
    unsubscribe = instance.onChange(() => { if (instance.state !== 'Shutdown') resolve() })
  })
  try {
    await unlessAborted(signal, left)
  } finally {
    unsubscribe()
  }
  await instance.settling
}
