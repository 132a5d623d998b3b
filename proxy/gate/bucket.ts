// A rate limit that allows bursts: tokens come at a steady rate and are saved up to one second's worth.

/** Allows `perSecond` uses a second on average, and as many at once. */
export class Bucket {
  readonly #perSecond: number
  #tokens: number
  #atMs: number

  constructor (perSecond: number) {
    this.#perSecond = perSecond
    this.#tokens = perSecond
    this.#atMs = performance.now()
  }

  /** Whether one more use is within the limit; if so it counts. */
  take (): boolean {
    const nowMs = performance.now()
    this.#tokens = Math.min(this.#perSecond, this.#tokens + (nowMs - this.#atMs) * this.#perSecond / 1000)
    this.#atMs = nowMs
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
