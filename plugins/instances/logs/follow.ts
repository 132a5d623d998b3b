// Reads a log from its tail on, through rotations, and goes on as it grows. Yields blocks of bytes in the order in which
// they were written.
import { constants, watch, type FSWatcher } from 'node:fs'
import { open, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { Signal } from '../../../core/jobs/signal.ts'
import { rotatedPath } from '../paths.ts'
import { dataStart } from './gap.ts'
import { tailStart } from './tail.ts'

const BLOCK_BYTES = 64 * 1024
// Change events can be missing: on some file systems, and when the host has no inotify watches left.
const SAFETY_CHECK_MS = 1000

export interface FollowOptions {
  readonly path: string
  /** lines of what is there already */
  readonly tail: number
  /** whether to go on at the end; asked each time the end is reached. A last look follows its first `false` */
  readonly goesOn: () => boolean
  /** woken when `goesOn` may have changed */
  readonly wake: Signal
  readonly signal: AbortSignal
  /** yield an empty block when nothing has come for so long */
  readonly heartbeatMs: number
}

/** The blocks of a log. An empty block is a heartbeat. Ends when `goesOn` says no and everything is read, or on abort. */
export async function * follow (options: FollowOptions): AsyncGenerator<Buffer, void, void> {
  const { signal, wake, heartbeatMs } = options
  const reader = await LogReader.open(options.path, options.tail)
  const watcher = watchFile(options.path, wake)
  try {
    for (;;) {
      // Asked before the read: what was written before the answer turned to no is then read for certain.
      const goesOn = options.goesOn()
      for (let block = await reader.next(); block !== undefined; block = await reader.next()) {
        yield block
        if (signal.aborted) return
      }
      if (!goesOn || signal.aborted) return
      if (!await waitForMore(reader, wake, heartbeatMs, signal)) yield Buffer.alloc(0)
    }
  } finally {
    watcher?.close()
    await reader.close()
  }
}

/** Whether it was woken, and not just time for a heartbeat. */
async function waitForMore (reader: LogReader, wake: Signal, heartbeatMs: number, signal: AbortSignal): Promise<boolean> {
  const until = performance.now() + heartbeatMs
  while (performance.now() < until) {
    const woken = await wake.wait(Math.min(SAFETY_CHECK_MS, heartbeatMs), signal)
    if (woken || signal.aborted || await reader.hasMore()) return true
  }
  return false
}

function watchFile (path: string, wake: Signal): FSWatcher | undefined {
  const names = new Set([basename(path), basename(rotatedPath(path))])
  try {
    // The folder, not the file: a rotation puts another file in its place.
    const watcher = watch(dirname(path), (_event, name) => {
      if (name === null || names.has(name)) wake.notify()
    })
    watcher.on('error', () => { watcher.close() })
    return watcher
  } catch (error) {
    if (hasCode(error, 'ENOSPC', 'EMFILE', 'ENOENT')) return undefined
    throw error
  }
}

/** Reads one file after the other as the log is rotated. */
class LogReader {
  #file: FileHandle | undefined
  #inode: number
  #offset: number
  readonly #path: string
  readonly #buffer = Buffer.alloc(BLOCK_BYTES)

  private constructor (path: string, file: FileHandle | undefined, inode: number, offset: number) {
    this.#path = path
    this.#file = file
    this.#inode = inode
    this.#offset = offset
  }

  static async open (path: string, tail: number): Promise<LogReader> {
    const current = await openLog(path)
    if (current === undefined) return new LogReader(path, undefined, 0, 0)
    const facts = await current.stat()
    const start = await tailStart(current, facts.size, tail)
    const old = start.lines < tail ? await openLog(rotatedPath(path)) : undefined
    if (old === undefined) return new LogReader(path, current, facts.ino, start.offset)
    const oldFacts = await old.stat()
    if (oldFacts.ino === facts.ino) {
      await old.close()
      return new LogReader(path, current, facts.ino, start.offset)
    }
    await current.close()
    const oldStart = await tailStart(old, oldFacts.size, tail - start.lines)
    return new LogReader(path, old, oldFacts.ino, oldStart.offset)
  }

  /** The next block, or `undefined` at the end for now. A fresh copy, since the reader goes on with its buffer. */
  async next (): Promise<Buffer | undefined> {
    for (;;) {
      const block = await this.#read()
      if (block !== undefined) return block
      const successor = await this.#successor()
      if (successor === undefined) return undefined
      // The writer uses the next file by now, so it will never write to this one again: one last read gets all of it.
      const last = await this.#read()
      if (last !== undefined) {
        await successor.file.close()
        return last
      }
      await this.#file?.close()
      this.#file = successor.file
      this.#inode = successor.inode
      this.#offset = 0
    }
  }

  async hasMore (): Promise<boolean> {
    if (this.#file === undefined) return await inodeOf(this.#path) !== undefined
    if ((await this.#file.stat()).size !== this.#offset) return true
    return await inodeOf(this.#path) !== this.#inode
  }

  async close (): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
  }

  async #read (): Promise<Buffer | undefined> {
    if (this.#file === undefined) return undefined
    const bytesRead = await this.#readAt(this.#file)
    if (bytesRead > 0) {
      this.#offset += bytesRead
      return Buffer.from(this.#buffer.subarray(0, bytesRead))
    }
    // Shorter than what was read: somebody has emptied it, so it begins anew.
    const { size } = await this.#file.stat()
    if (size >= this.#offset) return undefined
    this.#offset = 0
    return size === 0 ? undefined : await this.#read()
  }

  async #readAt (file: FileHandle): Promise<number> {
    const read = async (): Promise<number> => (await file.read(this.#buffer, 0, this.#buffer.length, this.#offset)).bytesRead
    const bytesRead = await read()
    if (bytesRead === 0 || this.#buffer[0] !== 0) return bytesRead
    // Perhaps it was too slow, and what it was to read is gone.
    const start = await dataStart(file)
    if (start <= this.#offset) return bytesRead
    this.#offset = start
    return await read()
  }

  /** The file after this one, once something has been written to it. */
  async #successor (): Promise<{ file: FileHandle, inode: number } | undefined> {
    // After two rotations within one read, the one in between is the rotated file.
    for (const path of await this.#isRotated() ? [this.#path] : [rotatedPath(this.#path), this.#path]) {
      const file = await openLog(path)
      if (file === undefined) continue
      const { ino, size } = await file.stat()
      if (ino !== this.#inode && (size > 0 || this.#file === undefined)) return { file, inode: ino }
      await file.close()
      if (ino === this.#inode) return undefined
    }
    return undefined
  }

  /** Whether this reader's file is the current one or the one before. */
  async #isRotated (): Promise<boolean> {
    if (this.#file === undefined || await inodeOf(rotatedPath(this.#path)) === this.#inode) return true
    return await inodeOf(this.#path) === this.#inode
  }
}

// The server is root and the VM's user is hostile: only a plain file is read, never what a link leads to.
async function openLog (path: string): Promise<FileHandle | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    if ((await file.stat()).isFile()) return file
    await file.close()
    return undefined
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function inodeOf (path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function isMissing (error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ELOOP', 'ENXIO')
}
