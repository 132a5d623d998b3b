// Work that goes on behind an answer: the next operation on its instance waits for it where it must, and the end of the server always does.

export interface Behind {
  /** Lets `work`, which never rejects, go on. */
  leave (key: string, work: Promise<void>): void
  /** Resolves once nothing under this key goes on. */
  over (key: string): Promise<void>
  /** Resolves once all is over that goes on now. */
  presentOver (): Promise<void>
  /** Resolves once nothing goes on at all. */
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
