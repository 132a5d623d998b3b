// Waits for something no longer than it may take.
import { pause } from '../../../core/jobs/pause.ts'

/** Whether `work` was fulfilled in time. A later failure is ignored. */
export async function within (timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  const timer = new AbortController()
  const late = pause(timeoutMs, timer.signal).then(() => false)
  const done = work.then(() => true, () => false)
  try {
    return await Promise.race([done, late])
  } finally {
    timer.abort()
  }
}
