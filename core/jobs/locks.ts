// Who may work on a thing, by key: one alone, or several beside one another. All others wait in the order in which they came.

export interface Locks {
  /** Runs `work` once nobody else holds or shares `key`. */
  hold<T> (key: string, work: () => Promise<T>): Promise<T>
  /** Runs `work` once nobody holds `key`, beside others that share it. Whoever asked to hold it before goes first. */
  share<T> (key: string, work: () => Promise<T>): Promise<T>
  /** Whether somebody holds or shares `key`, or waits for it. */
  isUsed (key: string): boolean
}

interface Queue {
  /** resolves when the last one that asked to hold the key is done */
  held: Promise<unknown>
  /** of those that have asked to share it since */
  shared: Promise<unknown>[]
  /** how many use it or wait for it: nobody, and the key can be forgotten */
  users: number
}

export function createLocks (): Locks {
  const queues = new Map<string, Queue>()

  async function take<T> (key: string, join: (queue: Queue, mine: Promise<void>) => Promise<unknown>, work: () => Promise<T>): Promise<T> {
    const queue = queues.get(key) ?? { held: Promise.resolve(), shared: [], users: 0 }
    queues.set(key, queue)
    queue.users++
    const { promise: mine, resolve: release } = deferred()
    try {
      await join(queue, mine)
      return await work()
    } finally {
      release()
      queue.users--
      if (queue.users === 0) queues.delete(key)
    }
  }

  return {
    async hold (key, work) {
      return await take(key, async (queue, mine) => {
        const before = Promise.all([queue.held, ...queue.shared])
        queue.held = before.then(() => mine)
        queue.shared = []
        await before
      }, work)
    },
    async share (key, work) {
      return await take(key, async (queue, mine) => {
        queue.shared.push(mine)
        await queue.held
      }, work)
    },
    isUsed: (key) => queues.has(key)
  }
}

function deferred (): { promise: Promise<void>, resolve: () => void } {
  let settle: () => void = () => {}
  const promise = new Promise<void>((resolve) => { settle = resolve })
  return { promise, resolve: settle }
}
