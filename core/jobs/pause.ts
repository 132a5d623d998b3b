// Waits for a time, or until aborted. For retries and deadlines, never to guess that something else has finished.

/** Resolves after `ms`, or as soon as `signal` aborts; it never rejects. */
export function pause (ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
