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

/** Resolves once it is done, at the first attempt or a later one. @param failed gets the first failure @throws that one, when `signal` aborts meanwhile */
export async function doUntilDone (attempt: () => Promise<void>, signal: AbortSignal, failed: (error: unknown) => void): Promise<void> {
  try {
    await attempt()
  } catch (error) {
    failed(error)
    if (!await untilDone(attempt, signal)) throw error
  }
}

/** Begins `untilDone` for a key, unless it goes on already. @param going the keys for which it goes on */
export function laterOnce (going: Set<string>, key: string, attempt: () => Promise<void>, signal: AbortSignal): void {
  if (going.has(key)) return
  going.add(key)
  void untilDone(attempt, signal).finally(() => { going.delete(key) })
}
