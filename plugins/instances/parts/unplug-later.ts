// Takes a TAP away that could not be taken away when its VM ended: tried again, less and less often, until it is gone or the instance has a VM again.
import { pause } from '../../../core/jobs/pause.ts'
import type { BaseContext } from '../context.ts'

const FIRST_MS = 1000
const LONGEST_MS = 60_000

export type UnplugLater = (id: string) => void

export function createUnplugLater (context: BaseContext): UnplugLater {
  const trying = new Set<string>()

  /** Whether nothing is left to be done. */
  async function tryAgain (id: string): Promise<boolean> {
    const instance = context.instances.all().find((each) => each.id === id)
    // Whoever gives it a VM, or deletes it, sees to the TAP.
    if (instance === undefined || instance.session !== undefined || instance.record.handle !== null || context.kept.find(id) !== undefined) return true
    return await Promise.resolve(context.network?.unplug(id)).then(() => true, () => false)
  }

  async function goOn (id: string): Promise<void> {
    const { signal } = context.closing
    for (let wait = FIRST_MS; ; wait = Math.min(2 * wait, LONGEST_MS)) {
      await pause(wait, signal)
      // The next server looks at all instances without a VM.
      if (signal.aborted || await context.locks.hold(id, async () => await tryAgain(id))) return
    }
  }

  return (id) => {
    if (trying.has(id)) return
    trying.add(id)
    goOn(id).catch((error: unknown) => { context.log.error({ err: error, instance: id }, 'a TAP without a VM stays until the next start') }).finally(() => { trying.delete(id) })
  }
}
