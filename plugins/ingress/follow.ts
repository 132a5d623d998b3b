// Follows the requests to an instance: the lines that nginx appends to its log, also across a rotation.
import type { FileHandle } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 250
const HEARTBEAT_MS = 15_000
const BLOCK = 65_536
/** characters; longer than any that nginx writes */
const MOST_LINE = 262_144
/** nginx writes to a rotated log for 5 s at most. */
const LATE_MS = 6000

/** A file that is read to its end again and again. */
interface Tail {
  readonly handle: FileHandle
  readonly inode: number
  at: number
  /** the beginning of a line */
  rest: string
  /** for a rotated file: until when lines may still come */
  until: number
}

export interface FollowOptions {
  /** opens the current log; undefined: it does not exist yet */
  readonly open: () => Promise<FileHandle | undefined>
  /** whether the instance still exists */
  readonly isThere: () => boolean
  readonly signal: AbortSignal
}

/** New lines, in blocks: first an empty one, after which no line is missed, and one whenever nothing came for a while. Ends with the instance or the signal. */
export async function * followLines ({ open, isThere, signal }: FollowOptions): AsyncGenerator<string[], void, void> {
  const tails: Tail[] = []
  let silentSince = performance.now()
  try {
    await addNewest(tails, open, 'end')
    yield []
    while (!signal.aborted && isThere()) {
      await addNewest(tails, open, 'start')
      const lines: string[] = []
      for (const tail of tails) lines.push(...await moreOf(tail))
      await dropOld(tails)
      if (lines.length > 0 || performance.now() - silentSince > HEARTBEAT_MS) {
        silentSince = performance.now()
        yield lines
      }
      // Polled: nothing reports what nginx writes.
      if (lines.length === 0) await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    }
  } finally {
    for (const { handle } of tails) await handle.close()
  }
}

/** @param from where its lines begin to count */
async function addNewest (tails: Tail[], open: FollowOptions['open'], from: 'start' | 'end'): Promise<void> {
  const handle = await open()
  if (handle === undefined) return
  const { ino, size } = await handle.stat()
  if (tails.at(-1)?.inode === ino) return await handle.close()
  for (const tail of tails) tail.until = Math.min(tail.until, performance.now() + LATE_MS)
  tails.push({ handle, inode: ino, rest: '', at: from === 'end' ? size : 0, until: Infinity })
}

async function moreOf (tail: Tail): Promise<string[]> {
  const { buffer, bytesRead } = await tail.handle.read(Buffer.alloc(BLOCK), 0, BLOCK, tail.at)
  tail.at += bytesRead
  // A character that is cut in two is lost: nginx writes a line at once, so this hardly ever happens.
  const lines = (tail.rest + buffer.toString('utf8', 0, bytesRead)).split('\n')
  tail.rest = (lines.pop() ?? '').slice(-MOST_LINE)
  return lines
}

async function dropOld (tails: Tail[]): Promise<void> {
  while ((tails[0]?.until ?? Infinity) < performance.now()) await tails.shift()?.handle.close()
}
