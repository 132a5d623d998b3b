// The requests to an instance as they come: what nginx appends to its log, also when that is put aside and another one is begun.
import type { FileHandle } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 250
const HEARTBEAT_MS = 15_000
const BLOCK = 65_536
/** characters; longer than any that nginx writes */
const MOST_LINE = 262_144
/** nginx writes to a log that was put aside for 5 s at most. */
const LATE_MS = 6000

/** A file that is read to its end again and again. */
interface Tail {
  readonly handle: FileHandle
  readonly inode: number
  at: number
  /** the beginning of a line */
  rest: string
  /** of one that was put aside: until when something may come */
  until: number
}

export interface FollowOptions {
  /** the log as it is now; undefined: there is none yet */
  readonly open: () => Promise<FileHandle | undefined>
  /** whether the instance is there still */
  readonly isThere: () => boolean
  readonly signal: AbortSignal
}

/** Lines from now on, in blocks: an empty one first, from which on none is missed, and when there was nothing for a while. Ends with the instance or the signal. */
export async function * followLines ({ open, isThere, signal }: FollowOptions): AsyncGenerator<string[], void, void> {
  const tails: Tail[] = []
  let silentSince = performance.now()
  try {
    await addNewest(tails, open, true)
    yield []
    while (!signal.aborted && isThere()) {
      await addNewest(tails, open, false)
      const lines: string[] = []
      for (const tail of tails) lines.push(...await moreOf(tail))
      await dropOld(tails)
      if (lines.length > 0 || performance.now() - silentSince > HEARTBEAT_MS) {
        silentSince = performance.now()
        yield lines
      }
      // Polled: nothing tells of what nginx writes.
      if (lines.length === 0) await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    }
  } finally {
    for (const { handle } of tails) await handle.close()
  }
}

/** @param isFirst begins at the end */
async function addNewest (tails: Tail[], open: FollowOptions['open'], isFirst: boolean): Promise<void> {
  const handle = await open()
  if (handle === undefined) return
  const { ino, size } = await handle.stat()
  if (tails.at(-1)?.inode === ino) return await handle.close()
  for (const tail of tails) tail.until = Math.min(tail.until, performance.now() + LATE_MS)
  tails.push({ handle, inode: ino, rest: '', at: isFirst ? size : 0, until: Infinity })
}

async function moreOf (tail: Tail): Promise<string[]> {
  const { buffer, bytesRead } = await tail.handle.read(Buffer.alloc(BLOCK), 0, BLOCK, tail.at)
  tail.at += bytesRead
  // A character that is cut in two costs itself: nginx writes a line at once, so nearly none is.
  const lines = (tail.rest + buffer.toString('utf8', 0, bytesRead)).split('\n')
  tail.rest = (lines.pop() ?? '').slice(-MOST_LINE)
  return lines
}

async function dropOld (tails: Tail[]): Promise<void> {
  while ((tails[0]?.until ?? Infinity) < performance.now()) await tails.shift()?.handle.close()
}
