// When memory images are compressed: some time after the standby, one after the other, and no longer once somebody needs the image.
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobQueue } from '../../../core/contracts/services.ts'
import { LONGEST_TIMER_MS } from '../../../core/jobs/longest-timer.ts'

export interface CompressionJob {
  /** The long part, without the instance's lock. Must end soon after the signal, and leave nothing then. */
  write (signal: AbortSignal): Promise<void>
  /** Makes what was written count. Takes the instance's lock, and looks there whether the signal has come meanwhile. */
  commit (signal: AbortSignal): Promise<void>
  /** Not called for what was cancelled. Must not reject. */
  failed (error: unknown): Promise<void>
}

export interface CompressionSchedule {
  /** Plans the compression of an instance's image, in place of an earlier one. @param delayMs time that is to pass first, whatever is done to the clock */
  plan (id: string, delayMs: number, job: CompressionJob): void
  /** Resolves when nothing reads or writes the files of the instance's image any more. May be called with the instance's lock held. */
  cancel (id: string): Promise<void>
  /** Cancels everything and waits until it has ended. No lock may be held. */
  close (): Promise<void>
}

interface Entry {
  readonly controller: AbortController
  /** resolves when nothing of the job is being written any more */
  readonly quiet: Promise<unknown>
  readonly done: Promise<void>
}

export function createCompressionSchedule (queue: JobQueue): CompressionSchedule {
  const entries = new Map<string, Entry>()

  const cancel = async (id: string): Promise<void> => {
    const entry = entries.get(id)
    entry?.controller.abort()
    await entry?.quiet
  }

  return {
    plan (id, delayMs, job) {
      const due = performance.now() + delayMs
      const before = entries.get(id)
      before?.controller.abort()
      const controller = new AbortController()
      const { quiet, write } = observed(job, controller.signal)
      const done = run(queue, id, controller.signal, async () => {
        // The last steps of a job wait for the lock, which the caller of `cancel` may hold: hence they are not part of `quiet`.
        await before?.done
        await sleepUntil(due, controller.signal)
      }, async (signal) => {
        await write(signal)
        await job.commit(signal)
      }).catch(async (error: unknown) => {
        // The queue, too, aborts its jobs when the server ends.
        if (!controller.signal.aborted && !isAbort(error)) await job.failed(error)
      }).finally(() => {
        if (entries.get(id) === entry) entries.delete(id)
      })
      const entry: Entry = { controller, quiet: Promise.all([before?.quiet, quiet]), done }
      entries.set(id, entry)
    },
    cancel,
    async close () {
      await Promise.all([...entries.values()].map(async ({ controller, done }) => {
        controller.abort()
        await done
      }))
    }
  }
}

async function run (queue: JobQueue, id: string, signal: AbortSignal, wait: () => Promise<void>, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  await wait()
  // Others use the same queue, so the key has a prefix.
  const job = `instance:${id}`
  const cancel = (): void => { queue.cancel(job) }
  signal.addEventListener('abort', cancel, { once: true })
  try {
    signal.throwIfAborted()
    await queue.push(job, work)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Tells when nothing is being written: at the abort when it has not begun, else at its end. */
function observed (job: CompressionJob, signal: AbortSignal): { quiet: Promise<void>, write: CompressionJob['write'] } {
  let isWriting = false
  let end = (): void => {}
  const quiet = new Promise<void>((resolve) => { end = resolve })
  signal.addEventListener('abort', () => { if (!isWriting) end() }, { once: true })
  return {
    quiet,
    async write (turn) {
      signal.throwIfAborted()
      isWriting = true
      try {
        await job.write(turn)
      } finally {
        isWriting = false
        end()
      }
    }
  }
}

function isAbort (error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

/** @param due by `performance.now()` */
async function sleepUntil (due: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  for (let left = due - performance.now(); left > 0; left = due - performance.now()) await sleep(Math.min(left, LONGEST_TIMER_MS), undefined, { signal, ref: false })
}
