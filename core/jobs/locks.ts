// Locks by key: one caller holds a key alone, or several share it. All others wait in order of arrival.
import { deferred } from './deferred.ts'
import { unlessAborted } from './unless-aborted.ts'

export interface Locks {
  /** Runs `work` once no other caller holds or shares `key`. @throws the signal's reason when it aborts before that: then `work` does not run */
  hold<T> (key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>
  /** Runs `work` once no caller holds `key`, in parallel with others that share it. Callers that asked to hold it earlier go first. */
  share<T> (key: string, work: () => Promise<T>): Promise<T>
  /** Whether somebody holds or shares `key`, or waits for it. */
  isUsed (key: string): boolean
}

interface Queue {
  /** resolves when the last caller that asked to hold the key is done */
  held: Promise<unknown>
  /** callers that have asked to share it since */
  shared: Promise<unknown>[]
  /** how many callers use it or wait for it; with none, the key can be forgotten */
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
    async hold (key, work, signal) {
      return await take(key, async (queue, mine) => {
        const before = Promise.all([queue.held, ...queue.shared])
        // Those who come later wait for those before this one, also when this one leaves the line.
        queue.held = before.then(() => mine)
        queue.shared = []
        await unlessAborted(signal, before)
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
