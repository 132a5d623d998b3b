// Time and chance as an object, so that tests can set both.
import { setTimeout as delay } from 'node:timers/promises'

export interface Clock {
  /** epoch ms */
  now (): number
  /** ms that pass whatever is done to the clock; from an arbitrary beginning */
  elapsed (): number
  /** from 0 to 1 */
  random (): number
  /** Calls `work`, which must not reject, again and again, each time `intervalMs` after the end of the last call. */
  every (intervalMs: number, work: () => Promise<void>): Repetition
}

export interface Repetition {
  /** Resolves when no call is under way and no further one will come. */
  stop (): Promise<void>
}

export const systemClock: Clock = {
  now: Date.now,
  elapsed: () => performance.now(),
  random: Math.random,
  every (intervalMs, work) {
    const stopped = new AbortController()
    const running = repeat(intervalMs, work, stopped.signal)
    return {
      async stop () {
        stopped.abort()
        await running
      }
    }
  }
}

async function repeat (intervalMs: number, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (await passed(intervalMs, signal)) await work()
}

/** Whether the time has passed before the signal came. */
async function passed (ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal, ref: false })
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
