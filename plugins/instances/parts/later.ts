// What could not be taken back when it was due is tried again, less and less often, until it is done. The next start of the server sees to what is left.
import { pause } from '../../../core/jobs/pause.ts'
import type { BaseContext } from '../context.ts'

const FIRST_MS = 1000
const LONGEST_MS = 60_000

/** One at a time of a name for each instance: another call while one goes on is none. Holds the instance's lock at each attempt; one that rejects is not the last. */
export function doLater ({ closing: { signal }, locks, later }: Pick<BaseContext, 'closing' | 'locks' | 'later'>, name: string, id: string, attempt: () => Promise<void>): void {
  const key = `${name} ${id}`
  if (later.has(key)) return
  later.add(key)
  const untilDone = async (): Promise<void> => {
    for (let wait = FIRST_MS; ; wait = Math.min(2 * wait, LONGEST_MS)) {
      await pause(wait, signal)
      if (signal.aborted || await locks.hold(id, attempt).then(() => true, () => false)) return
    }
  }
  void untilDone().finally(() => { later.delete(key) })
}
