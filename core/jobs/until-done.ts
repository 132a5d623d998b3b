// Tries again what must be done once, less and less often.
import { pause } from './pause.ts'

const FIRST_MS = 1000
const LONGEST_MS = 60_000

/** To be called when a first attempt has failed. Resolves when one did not reject, or when `signal` aborts: then false. */
export async function untilDone (attempt: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
  for (let wait = FIRST_MS; ; wait = Math.min(2 * wait, LONGEST_MS)) {
    await pause(wait, signal)
    if (signal.aborted) return false
    if (await attempt().then(() => true, () => false)) return true
  }
}

/** Begins `untilDone` for a key, unless it goes on already. @param going the keys for which it goes on */
export function laterOnce (going: Set<string>, key: string, attempt: () => Promise<void>, signal: AbortSignal): void {
  if (going.has(key)) return
  going.add(key)
  void untilDone(attempt, signal).finally(() => { going.delete(key) })
}
