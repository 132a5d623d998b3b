// Limits the time of a plugin's work, which may never end.

/**
 * Runs `work` for at most `limitMs`. After that, or when `outer` aborts, its signal aborts and the call rejects;
 * whatever the work still does is not awaited, and a late failure of it is ignored.
 */
export async function withDeadline (what: string, limitMs: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  outer?.throwIfAborted()
  const controller = new AbortController()
  const stopped = new Promise<never>((_resolve, reject) => {
    controller.signal.addEventListener('abort', () => { reject(controller.signal.reason) }, { once: true })
  })
  const timer = setTimeout(() => { controller.abort(new Error(`${what} took longer than ${limitMs / 1000} s`)) }, limitMs)
  const forward = (): void => { controller.abort(outer?.reason) }
  outer?.addEventListener('abort', forward, { once: true })
  const running = work(controller.signal)
  running.catch(() => undefined)
  try {
    await Promise.race([running, stopped])
  } finally {
    clearTimeout(timer)
    outer?.removeEventListener('abort', forward)
  }
}
