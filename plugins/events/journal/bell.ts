// Wakes everybody who waits. A ring without a waiter is lost, so callers must check before they wait.

export class Bell {
  readonly #waiting = new Set<() => void>()

  ring (): void {
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves at the next ring, after `timeoutMs`, or on abort. */
  async wait (timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, timeoutMs)
      signal.addEventListener('abort', done)
      this.#waiting.add(done)
    })
  }
}
