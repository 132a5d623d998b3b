// The answer of GET /host/log/stream. It is read from the lines that are kept, as fast as the client reads: nothing is buffered for a slow one, which is told what it has missed.
import { sseComment } from '../../../core/http/sse.ts'
import { Signal } from '../../../core/jobs/signal.ts'
import type { RecentLog } from '../../../core/logging/recent.ts'
import type { Level } from '../schemas.ts'
import { isImportant, lineOf, newestLines } from './lines.ts'

export interface FollowOptions {
  readonly log: RecentLog
  /** of the server */
  readonly run: string
  /** how many of the lines that are there already */
  readonly limit: number
  readonly level?: Level | undefined
  /** id of the line that the client has seen last */
  readonly after?: string | undefined
  readonly signal: AbortSignal
}

const HEARTBEAT_MS = 15_000
/** How much is written to the connection at once. */
const CHUNK_CHARACTERS = 16_384

export async function * follow (options: FollowOptions): AsyncGenerator<string, void, void> {
  const { log, run, level, signal } = options
  const bell = new Signal()
  const leave = log.onLine(() => { bell.notify() })
  try {
    // Sends the headers at once.
    yield sseComment('log')
    let next = beginOf(options)
    while (!signal.aborted) {
      if (next < log.first) {
        yield `event: missed\ndata: ${JSON.stringify({ lines: log.first - next })}\n\n`
        next = log.first
      }
      let chunk = ''
      while (next < log.next && chunk.length < CHUNK_CHARACTERS) {
        const line = lineOf(log.at(next) ?? '', run, next)
        if (line !== undefined && isImportant(line, level)) chunk += `id: ${line.id}\ndata: ${JSON.stringify(line)}\n\n`
        next++
      }
      if (chunk !== '') yield chunk
      else if (next === log.next && !await bell.wait(HEARTBEAT_MS, signal) && !signal.aborted) yield sseComment('waiting')
    }
  } finally {
    leave()
  }
}

/** The number of the first line: behind the one that the client has, if it is of this run of the server. */
function beginOf ({ log, run, limit, level, after }: FollowOptions): number {
  if (after !== undefined) {
    const at = after.lastIndexOf('-')
    const number = Number(after.slice(at + 1))
    // All that another run has said is new to it.
    return after.slice(0, at) === run && Number.isSafeInteger(number) ? Math.min(number + 1, log.next) : log.first
  }
  if (limit === 0) return log.next
  const [oldest] = newestLines(log, run, { limit, level }).lines
  return oldest === undefined ? log.next : Number(oldest.id.slice(run.length + 1))
}
