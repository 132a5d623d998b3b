// Finds an emulated host that stands still. QEMU's emulation of SVM does that to its kernel now and then, as it kills it, and a kernel that stands still says nothing.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** seconds between two beats of the host */
const PAUSE_S = 10
/** A host that waits for a processor is late by seconds. */
const STILL_MS = 180_000
const LOOK_MS = 2000

/** lines of shell for the host: writes to the file as long as the host lives */
export const beatTo = (path: string): string => `while echo > ${path}; do sleep ${PAUSE_S}; done &`

/**
 * Runs `work`, and aborts its signal when the file has not been written to for `stillMs`, from its first beat on: how long a boot takes is another bound's.
 * @returns what `work` does after that, and whether it came to that
 */
export async function whileItBeats<T> (path: string, work: (signal: AbortSignal) => Promise<T>, { stillMs = STILL_MS, lookMs = LOOK_MS } = {}): Promise<{ readonly result: T, readonly stoodStill: boolean }> {
  const still = new AbortController()
  const over = new AbortController()
  const ended = work(still.signal).finally(() => { over.abort() })
  let beat: bigint | undefined
  let since = performance.now()
  while (!over.signal.aborted && !still.signal.aborted) {
    await Promise.race([ended, delay(lookMs)])
    const now = existsSync(path) ? (await stat(path, { bigint: true })).mtimeNs : undefined
    if (now === undefined || now !== beat) [beat, since] = [now, performance.now()]
    else if (!over.signal.aborted && performance.now() - since > stillMs) still.abort()
  }
  return { result: await ended, stoodStill: still.signal.aborted }
}
