// Work that goes on after an answer was sent, and gives back what a VM had. The next operation on the same instance waits for it where it must, and whoever is short of room; the end of the server always does.

export interface Behind {
  /** Registers `work`, which goes on, must never reject, and must not wait for the lock of an instance: whoever waits for it may hold that. */
  leave (key: string, work: Promise<void>): void
  /** Resolves once no work under this key is under way. */
  over (key: string): Promise<void>
  /** Resolves once all work that is under way now has ended. */
  presentOver (): Promise<void>
  /** Resolves once no work is under way at all. */
  allOver (): Promise<void>
}

export function createBehind (): Behind {
  const going = new Map<string, Set<Promise<void>>>()
  const over = async (key: string): Promise<void> => {
    for (let works = going.get(key); works !== undefined; works = going.get(key)) await Promise.all(works)
  }
  return {
    leave (key, work) {
      const works = going.get(key) ?? new Set()
      going.set(key, works)
      const tracked = work.finally(() => {
        works.delete(tracked)
        if (works.size === 0) going.delete(key)
      })
      works.add(tracked)
    },
    over,
    async presentOver () { await Promise.all([...going.values()].flatMap((works) => [...works])) },
    async allOver () {
      while (going.size > 0) await Promise.all([...going.keys()].map(over))
    }
  }
}
