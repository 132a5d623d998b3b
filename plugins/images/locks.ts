// Takes turns on a key within this process.

export interface Locks {
  /** Runs `work` when every earlier one for the same key has ended. */
  run<T> (key: string, work: () => Promise<T>): Promise<T>
}

export function createLocks (): Locks {
  const tails = new Map<string, Promise<unknown>>()
  return {
    async run (key, work) {
      const before = tails.get(key) ?? Promise.resolve()
      const turn = before.then(work, work)
      tails.set(key, turn)
      try {
        return await turn
      } finally {
        if (tails.get(key) === turn) tails.delete(key)
      }
    }
  }
}
