// One caller at a time per key; the others wait in the order in which they came.

export interface Locks {
  /** Runs `work` once nobody else holds `key`. */
  hold<T> (key: string, work: () => Promise<T>): Promise<T>
}

export function createLocks (): Locks {
  const tails = new Map<string, Promise<void>>()
  return {
    async hold (key, work) {
      const before = tails.get(key) ?? Promise.resolve()
      const { promise: mine, resolve: release } = deferred()
      const tail = before.then(() => mine)
      tails.set(key, tail)
      await before
      try {
        return await work()
      } finally {
        release()
        // Only the last in the queue may forget the key.
        if (tails.get(key) === tail) tails.delete(key)
      }
    }
  }
}

function deferred (): { promise: Promise<void>, resolve: () => void } {
  let settle: () => void = () => {}
  const promise = new Promise<void>((resolve) => { settle = resolve })
  return { promise, resolve: settle }
}
