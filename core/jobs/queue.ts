// Work with bounded concurrency, first in first out; the place of a job in the line can be asked for.
import type { JobQueue, Jobs } from '../contracts/services.ts'
import { InvalidState } from '../errors/common.ts'
import { openSpan, withSpan } from '../tracing/span.ts'
import { deferred } from './deferred.ts'

interface Entry {
  readonly id: string
  readonly controller: AbortController
  readonly promise: Promise<unknown>
  readonly start: () => Promise<void>
  readonly reject: (error: unknown) => void
}

/** The `jobs` service with an end: `close` ends every queue. */
export interface ClosableJobs extends Jobs { close (): Promise<void> }

/** Makes the `jobs` service. The same name always gives the same queue. */
export function createJobs (): ClosableJobs {
  const queues = new Map<string, JobQueue>()
  return {
    queue (name, options) {
      const queue = queues.get(name) ?? createQueue(name, options.concurrency)
      queues.set(name, queue)
      return queue
    },
    async close () { await Promise.all([...queues.values()].map((queue) => queue.close())) }
  }
}

function createQueue (name: string, concurrency: number): JobQueue {
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) throw new RangeError(`queue ${name}: concurrency must be a whole number from 1`)
  const waiting = new Map<string, Entry>()
  const running = new Map<string, Entry>()
  let closed = false

  const next = (): void => {
    for (const [id, entry] of waiting) {
      if (running.size >= concurrency) return
      waiting.delete(id)
      running.set(id, entry)
      void entry.start()
    }
  }

  const cancel = (id: string): void => {
    running.get(id)?.controller.abort(cancelled(name, id))
    const entry = waiting.get(id)
    if (entry === undefined) return
    waiting.delete(id)
    entry.reject(cancelled(name, id))
  }

  return {
    push<T> (id: string, job: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const known = waiting.get(id) ?? running.get(id)
      // By the contract one id names one kind of job within a queue, so the result has the type that this caller expects.
      if (known !== undefined) return known.promise as Promise<T>
      if (closed) return Promise.reject(InvalidState(`the queue ${name} takes no more work: the server is stopping`))
      // Removed before the promise settles: a caller that waited for it may push the same id again at once.
      const entry = createEntry(name, id, job, () => { running.delete(id); next() })
      waiting.set(id, entry)
      // A cancelled job without listeners is not an unhandled rejection; the caller of push still sees the rejection.
      entry.promise.catch(() => undefined)
      next()
      return entry.promise as Promise<T>
    },
    position (id) {
      const index = [...waiting.keys()].indexOf(id)
      return index < 0 ? undefined : index + 1
    },
    cancel,
    async close () {
      closed = true
      const ending = [...running.values()].map((entry) => entry.promise)
      for (const id of [...waiting.keys(), ...running.keys()]) cancel(id)
      await Promise.allSettled(ending)
    }
  }
}

function createEntry<T> (queue: string, id: string, job: (signal: AbortSignal) => Promise<T>, ended: () => void): Entry {
  const controller = new AbortController()
  const { promise, resolve, reject } = deferred<T>()
  // Opened here: waiting in the queue belongs to the trace of this caller. The job that ends and starts this one belongs to another caller.
  const span = openSpan(`job ${queue}`)
  promise.catch((error: unknown) => { span?.fail(error) }).finally(() => { span?.end() })
  const start = async (): Promise<void> => {
    try {
      const value = await withSpan(span, async () => await job(controller.signal))
      ended()
      resolve(value)
    } catch (error) {
      ended()
      reject(error)
    }
  }
  return { id, controller, promise, start, reject }
}

function cancelled (queue: string, id: string): DOMException {
  return new DOMException(`job ${id} of queue ${queue} was cancelled`, 'AbortError')
}
