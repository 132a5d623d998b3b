// How long one case may keep the thread that serves everybody. It is measured in the thread's own processor time, which other work on the machine does not add to.
import { limitMs, mainThreadMs } from '../../helpers/processor-time.ts'

const LIMIT_MS = 200

/** Watches the main thread of a process, this one's without a number. */
export class Hold {
  readonly #pid: number
  #fromMs: number
  #longestMs = 0

  constructor (pid = process.pid) {
    this.#pid = pid
    this.#fromMs = mainThreadMs(pid)
  }

  begin (): void {
    this.#longestMs = 0
    this.#fromMs = mainThreadMs(this.#pid)
  }

  /** A case that waits is several pieces of work, and each counts by itself. */
  pause (): void {
    const nowMs = mainThreadMs(this.#pid)
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#fromMs)
    this.#fromMs = nowMs
  }

  /** What is wrong with the longest piece since `begin`; `undefined` when nothing is. */
  fault (): string | undefined {
    this.pause()
    const tookMs = this.#longestMs
    if (tookMs < LIMIT_MS) return undefined
    // A slow machine gets more.
    const mostMs = limitMs()
    return tookMs < mostMs ? undefined : `the thread was kept for ${Math.round(tookMs)} ms; at most ${Math.round(mostMs)} are allowed`
  }
}
