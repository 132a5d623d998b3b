// Waits, for as long as a signal allows, for work that does not take a signal.

/** Settles like `work`, or rejects with the signal's reason as soon as it aborts; a later result is ignored. */
export async function unlessAborted<T> (signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return await work
  let stop = (): void => {}
  const aborted = new Promise<never>((resolve, reject) => {
    stop = () => { reject(signal.reason) }
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
    work.catch(() => {})
  }
}
