// A bell: waiters wake when it rings. A ring without a waiter is kept for the next one.

export class Signal {
  #rung = false
  #wake: (() => void) | undefined

  notify (): void {
    this.#rung = true
    this.#wake?.()
  }

  /** Resolves with true when rung, with false after `timeoutMs` or on abort. One waiter at a time. */
  async wait (timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#rung && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', done)
          this.#wake = undefined
          resolve()
        }
        const timer = setTimeout(done, timeoutMs)
        signal.addEventListener('abort', done)
        this.#wake = done
      })
    }
    const rung = this.#rung
    this.#rung = false
    return rung
  }
}
