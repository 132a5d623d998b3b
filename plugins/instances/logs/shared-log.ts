// One log that many follow: it is read once, and each block goes to all who have come to its end.
import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { hasCode } from '../../../core/errors/system-code.ts'
import { rotatedPath } from '../folder/paths.ts'
import type { LogReader, Place } from './log-reader.ts'

// Change events can be missing: on some file systems, and when the host has no inotify watches left.
const SAFETY_CHECK_MS = 1000
/** A follower that is further behind reads alone again. */
const MOST_WAITING_BYTES = 1024 * 1024
const WOKEN_AT_ONCE = 100

/** One follower of a log. */
export class Follower {
  readonly waiting: Buffer[] = []
  waitingBytes = 0
  /** set when the follower has fallen behind; it goes on with this reader after the blocks that wait */
  reader: LogReader | undefined
  /** the follower takes nothing any more */
  isOver = false
  /** why nothing will come any more */
  failure: unknown
  /** called when something above has changed */
  readonly notify: () => void

  constructor (notify: () => void) {
    this.notify = notify
  }

  take (): Buffer | undefined {
    const block = this.waiting.shift()
    this.waitingBytes -= block?.length ?? 0
    return block
  }
}

export class SharedLog {
  readonly #reader: LogReader
  readonly #followers = new Set<Follower>()
  readonly #watcher: FSWatcher | undefined
  readonly #timer: NodeJS.Timeout
  readonly #onEnd: () => void
  /** the place up to which every follower has everything, or has it waiting */
  #place: Place
  #pumping: Promise<void> | undefined
  #isAskedAgain = false
  #hasEnded = false

  /** @param reader is at the end of the log; it belongs to this log from now on */
  constructor (path: string, reader: LogReader, onEnd: () => void) {
    this.#reader = reader
    this.#place = reader.place
    this.#onEnd = onEnd
    this.#watcher = watchFile(path, () => { void this.pump() })
    this.#timer = setInterval(() => { void this.pump() }, SAFETY_CHECK_MS).unref()
  }

  /** Whether a follower that has come to this place misses nothing when it is added in this turn of the event loop. */
  isAt ({ inode, offset }: Place): boolean {
    return inode === this.#place.inode && offset === this.#place.offset
  }

  isReadBy (reader: LogReader): boolean {
    return reader === this.#reader
  }

  add (follower: Follower): void {
    this.#followers.add(follower)
  }

  remove (follower: Follower): void {
    this.#followers.delete(follower)
    if (this.#followers.size === 0) this.#end()
  }

  /** Resolves once everything that was written before this call has gone to all followers. Never rejects. */
  async pump (): Promise<void> {
    this.#isAskedAgain = true
    this.#pumping ??= this.#pump().finally(() => { this.#pumping = undefined })
    await this.#pumping
  }

  async #pump (): Promise<void> {
    try {
      while (this.#isAskedAgain && !this.#hasEnded) {
        this.#isAskedAgain = false
        for (let block = await this.#reader.next(); block !== undefined && !this.#hasEnded; block = await this.#reader.next()) await this.#give(block)
        this.#place = this.#reader.place
      }
    } catch (error) {
      for (const follower of [...this.#followers]) {
        follower.failure = error
        follower.notify()
      }
      this.#end()
    }
  }

  async #give (block: Buffer): Promise<void> {
    const late: Follower[] = []
    const served: Follower[] = []
    for (const follower of this.#followers) {
      if (follower.waitingBytes + block.length > MOST_WAITING_BYTES) late.push(follower)
      else {
        follower.waiting.push(block)
        follower.waitingBytes += block.length
        served.push(follower)
      }
    }
    this.#place = this.#reader.place
    await wakeInTurns(served)
    for (const follower of late) {
      // At once: the blocks after this one are not for this follower.
      this.#followers.delete(follower)
      const reader = await this.#reader.back(block.length)
      if (follower.isOver) await reader.close()
      else follower.reader = reader
      follower.notify()
    }
    if (this.#followers.size === 0) this.#end()
  }

  #end (): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#onEnd()
    clearInterval(this.#timer)
    this.#watcher?.close()
    const close = async (): Promise<void> => { await this.#reader.close() }
    // Not during a read. An error on closing a file that was only read says nothing.
    ;(this.#pumping ?? Promise.resolve()).then(close).catch(() => {})
  }
}

/** All of a thousand followers awake at once would keep others waiting until the last of them has sent its block. */
async function wakeInTurns (followers: readonly Follower[]): Promise<void> {
  for (const [index, follower] of followers.entries()) {
    if (index > 0 && index % WOKEN_AT_ONCE === 0) await turn()
    follower.notify()
  }
}

function watchFile (path: string, changed: () => void): FSWatcher | undefined {
  const names = new Set([basename(path), basename(rotatedPath(path))])
  try {
    // The folder, not the file: a rotation puts another file in its place.
    const watcher = watch(dirname(path), (_event, name) => {
      if (name === null || names.has(name)) changed()
    })
    watcher.on('error', () => { watcher.close() })
    return watcher
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EMFILE', 'ENOENT')) return undefined
    throw error
  }
}
