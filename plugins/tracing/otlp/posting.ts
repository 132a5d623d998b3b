// Posts batches by the exporter in a thread of its own. While nothing but the server's side of HTTP runs in the main thread, its code is compiled for that alone; and whatever a collector answers is read where no request waits for it.
import { Worker } from 'node:worker_threads'
import type { Exporter, ExporterOptions } from './exporter.ts'

/** What the thread says of a batch: why the collector has not taken it. */
export interface Posted { readonly reason: string | undefined }

export interface PostingThread extends Exporter {
  /** Ends the thread, and what it is about to post with it. */
  close (): Promise<void>
}

/** The exporter may try again until its time is over, and that attempt may take as long, and the thread begins first; what takes longer is an answer that goes on coming without an end, for which the exporter would wait. */
const LONGEST_POST = { times: 2, andMs: 5000 }
const ENDED = 'the thread that posts has ended'

/** One batch at a time. The thread begins with the first one, and again with the next one after it has ended by itself. */
export function createPostingThread (options: ExporterOptions): PostingThread {
  let worker: Worker | undefined
  /** why the thread has ended, if it has */
  let end = ENDED
  let waiting: ((reason: string | undefined) => void) | undefined
  let late: NodeJS.Timeout | undefined
  const answer = (reason: string | undefined): void => {
    clearTimeout(late)
    const done = waiting
    waiting = undefined
    done?.(reason)
  }
  const start = (): Worker => {
    end = ENDED
    const started = new Worker(new URL('posting-thread.js', import.meta.url), { workerData: options })
    started.unref()
    started.on('message', ({ reason }: Posted) => { answer(reason) })
    started.on('error', ({ message }) => { end = `the thread that posts: ${message}` })
    // Not before: the answer brings the next batch, which needs another thread.
    started.once('exit', () => {
      worker = undefined
      answer(end)
    })
    return started
  }
  return {
    post (batch, done) {
      waiting = done
      worker ??= start()
      worker.postMessage(batch, [batch.messages.buffer, batch.singles.rows.buffer])
      late = setTimeout(() => {
        end = 'its answer does not end'
        void worker?.terminate()
      }, options.timeoutMs * LONGEST_POST.times + LONGEST_POST.andMs).unref()
    },
    async close () {
      await worker?.terminate()
    }
  }
}
