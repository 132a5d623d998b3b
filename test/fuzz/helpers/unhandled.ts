// Exceptions and rejections that nobody handled: what would have ended a server.

/** Gives what came since it was asked last. */
export function watchUnhandled (atEnd: (work: () => unknown) => void): () => string | undefined {
  const seen: string[] = []
  const note = (error: unknown): void => { seen.push(error instanceof Error ? error.stack ?? error.message : String(error)) }
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  atEnd(() => { process.off('uncaughtException', note).off('unhandledRejection', note) })
  return () => {
    const [first] = seen.splice(0)
    return first === undefined ? undefined : `nobody handled ${first}`
  }
}
