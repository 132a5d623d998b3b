// Signals that abort with one of others, which may live much longer, and with a limit of time beside them.
import { setMaxListeners } from 'node:events'

interface Joined {
  readonly controller: AbortController
  /** Takes it out of the other signals; it no longer aborts with them then. */
  readonly release: () => void
}

/** Not AbortSignal.any: of its sources it keeps weak references alone, and each source keeps an entry for it as long as the source lives, however soon nobody needs it any more (Node 20.20.2). */
function joined (sources: readonly AbortSignal[]): Joined {
  const controller = new AbortController()
  const ends = sources.map((source) => {
    const end = (): void => { controller.abort(source.reason) }
    if (source.aborted) end()
    else {
      // There is one listener for each use, which removes its own: Node's warning of a leak at more than ten would be wrong.
      setMaxListeners(0, source)
      source.addEventListener('abort', end)
    }
    return () => { source.removeEventListener('abort', end) }
  })
  return { controller, release: () => { for (const leave of ends) leave() } }
}

/** A limit of `timeoutMs`, which aborts with a TimeoutError. The timer holds the signal: AbortSignal.timeout may be collected as garbage while its end is waited for, and then it never comes (Node 20.20.2). */
function limited (timeoutMs: number, sources: readonly AbortSignal[]): Joined {
  const { controller, release } = joined(sources)
  const over = (): void => {
    clearTimeout(timer)
    release()
  }
  const timer = setTimeout(() => {
    release()
    controller.abort(new DOMException(`it took longer than ${timeoutMs} ms`, 'TimeoutError'))
  }, timeoutMs).unref()
  controller.signal.addEventListener('abort', over, { once: true })
  if (controller.signal.aborted) over()
  return { controller, release: over }
}

/** Aborts with one of the signals, or after `timeoutMs`; it is in the others until then. For what has an end of its own, `within`. */
export function withDeadline (timeoutMs: number, ...signals: readonly AbortSignal[]): AbortSignal {
  return limited(timeoutMs, signals).controller.signal
}

/** Does `work` with a signal that aborts with one of the others, or after `timeoutMs`. Nothing of it is left in the others once the work is done. */
export async function within<T> (timeoutMs: number, signals: readonly AbortSignal[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { controller: { signal }, release } = limited(timeoutMs, signals)
  try {
    return await work(signal)
  } finally {
    release()
  }
}

/** The same without a limit of time. */
export async function withSignals<T> (signals: readonly AbortSignal[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { controller: { signal }, release } = joined(signals)
  try {
    return await work(signal)
  } finally {
    release()
  }
}
