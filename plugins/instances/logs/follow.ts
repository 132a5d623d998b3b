// Follows a log from its tail on, through rotations, and goes on as it grows. Yields blocks of bytes in the order in which
// they were written. Each follower reads alone until it has come to the end, and from there on together with all others.
import type { Signal } from '../../../core/jobs/signal.ts'
import { LogReader } from './log-reader.ts'
import { Follower, SharedLog } from './shared-log.ts'

export interface FollowOptions {
  readonly path: string
  /** how many lines of what is there already */
  readonly tail: number
  /** whether to go on at the end; asked each time the end is reached. A last look follows its first `false` */
  readonly goesOn: () => boolean
  /** woken when `goesOn` may have changed */
  readonly wake: Signal
  readonly signal: AbortSignal
  /** yield an empty block when nothing has come for so long */
  readonly heartbeatMs: number
}

/** After a rotation one follower may be at the end of the old file and another at the beginning of a new file that is still empty. */
const APART_MS = 50

/** by path: logs that somebody follows */
const shared = new Map<string, SharedLog>()

/** The blocks of a log. An empty block is a heartbeat. Ends when `goesOn` says no and everything is read, or on abort. */
export async function * follow (options: FollowOptions): AsyncGenerator<Buffer, void, void> {
  const { path, signal, wake, heartbeatMs } = options
  let reader: LogReader | undefined = await LogReader.open(path, options.tail)
  let log: SharedLog | undefined
  const follower = new Follower(() => { wake.notify() })
  let beatAt = performance.now() + heartbeatMs
  try {
    for (;;) {
      // Asked before the read: what was written before the answer turned to no is read for certain then.
      const goesOn = options.goesOn()
      if (!goesOn) await log?.pump()
      for (let block = reader === undefined ? follower.take() : await reader.next(); block !== undefined; block = reader === undefined ? follower.take() : await reader.next()) {
        yield block
        if (signal.aborted) return
        beatAt = performance.now() + heartbeatMs
      }
      if (follower.failure !== undefined) throw follower.failure
      if (reader === undefined && follower.reader !== undefined) {
        // The follower was too slow.
        reader = follower.reader
        follower.reader = undefined
        log = undefined
        continue
      }
      if (!goesOn || signal.aborted) return
      let waitMs = beatAt - performance.now()
      if (reader !== undefined) {
        log = join(path, reader, follower)
        if (log === undefined) {
          const other = shared.get(path)
          await other?.pump()
          // One of the two is behind the other.
          waitMs = other === undefined || other.isAt(reader.place) ? 0 : Math.min(waitMs, APART_MS)
        } else {
          const own: LogReader = reader
          reader = undefined
          if (!log.isReadBy(own)) await own.close()
        }
      }
      if (waitMs > 0) await wake.wait(waitMs, signal)
      if (performance.now() < beatAt || signal.aborted) continue
      yield Buffer.alloc(0)
      beatAt = performance.now() + heartbeatMs
    }
  } finally {
    follower.isOver = true
    log?.remove(follower)
    await reader?.close()
    await follower.reader?.close()
  }
}

/** To be called in the same turn in which the reader came to its end. Undefined when the others are at another place. */
function join (path: string, reader: LogReader, follower: Follower): SharedLog | undefined {
  const known = shared.get(path)
  if (known?.isAt(reader.place) === false) return undefined
  const log = known ?? new SharedLog(path, reader, () => { if (shared.get(path) === log) shared.delete(path) })
  shared.set(path, log)
  log.add(follower)
  return log
}
