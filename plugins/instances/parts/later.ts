// What could not be taken back when it was due is tried again, less and less often, until it is done. The next start of the server sees to what is left.
import { pause } from '../../../core/jobs/pause.ts'
import type { BaseContext } from '../context.ts'

const FIRST_MS = 1000
const LONGEST_MS = 60_000

/** Holds the instance's lock at each attempt; one that rejects is not the last. Never rejects. */
export async function untilDone ({ closing: { signal }, locks }: Pick<BaseContext, 'closing' | 'locks'>, id: string, attempt: () => Promise<void>): Promise<void> {
  for (let wait = FIRST_MS; ; wait = Math.min(2 * wait, LONGEST_MS)) {
    await pause(wait, signal)
    if (signal.aborted || await locks.hold(id, attempt).then(() => true, () => false)) return
  }
}
