// A signal with a limit of time beside others.

/**
 * Aborts with one of the signals, or after `timeoutMs` with a TimeoutError. In place of AbortSignal.any with AbortSignal.timeout in it: of its sources that keeps weak references alone, so (Node 20.20.2)
 * the timeout may be collected as garbage while its end is waited for, and then it never comes. Here the timer holds it.
 */
export function withDeadline (timeoutMs: number, ...signals: readonly AbortSignal[]): AbortSignal {
  const timeout = new AbortController()
  setTimeout(() => { timeout.abort(new DOMException(`it took longer than ${timeoutMs} ms`, 'TimeoutError')) }, timeoutMs).unref()
  return AbortSignal.any([...signals, timeout.signal])
}
