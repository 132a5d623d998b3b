// Time and chance, apart from the rest so that tests can set both.
import { setTimeout as delay } from 'node:timers/promises'

export interface Clock {
  /** epoch ms */
  now (): number
  /** ms that pass whatever is done to the clock */
  elapsed (): number
  /** from 0 to 1 */
  random (): number
  /** Calls `work`, which must not reject, again and again, `intervalMs` after its last end. */
  every (intervalMs: number, work: () => Promise<void>): Repetition
}

export interface Repetition {
  /** Resolves when no call is under way and none will come. */
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

/** Whether the time has passed, and not the signal come first. */
async function passed (ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, { signal, ref: false })
    return true
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}
