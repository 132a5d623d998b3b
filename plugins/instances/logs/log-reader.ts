// Reads one log from its tail on, through rotations, as far as it goes at present.
import { constants } from 'node:fs'
import { open, stat, type FileHandle } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'
import { rotatedPath } from '../folder/paths.ts'
import { dataStart } from './gap.ts'
import { tailStart } from './tail.ts'

const BLOCK_BYTES = 64 * 1024

/** How far a reader has come. */
export interface Place {
  readonly inode: number
  readonly offset: number
}

/** Reads one file after the other as the log is rotated. */
export class LogReader {
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
    // A rotation that failed midway has left the renamed file alone, in which the writer goes on.
    const current = await openLog(path) ?? await openLog(rotatedPath(path))
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

  /** how far it has come */
  get place (): Place {
    return { inode: this.#inode, offset: this.#offset }
  }

  /** Another reader in the same file, so many bytes before this one; works also when that file has lost its name. */
  async back (bytes: number): Promise<LogReader> {
    const file = this.#file === undefined ? undefined : await open(`/proc/self/fd/${this.#file.fd}`, constants.O_RDONLY)
    return new LogReader(this.#path, file, this.#inode, this.#offset - bytes)
  }

  /** The next block, or `undefined` at the end for now. A fresh copy, since the reader goes on with its buffer. */
  async next (): Promise<Buffer | undefined> {
    for (;;) {
      const block = await this.#read()
      if (block !== undefined) return block
      const successor = await this.#successor()
      if (successor === undefined) return undefined
      // The writer uses the next file by now and will never write to this one again, so one last read gets all of it.
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
    // The file is shorter than what was read: somebody has emptied it, so reading begins anew.
    const { size } = await this.#file.stat()
    if (size >= this.#offset) return undefined
    this.#offset = 0
    return size === 0 ? undefined : await this.#read()
  }

  async #readAt (file: FileHandle): Promise<number> {
    const read = async (): Promise<number> => (await file.read(this.#buffer, 0, this.#buffer.length, this.#offset)).bytesRead
    const bytesRead = await read()
    if (bytesRead === 0 || this.#buffer[0] !== 0) return bytesRead
    // The reader may have been too slow, so that its next bytes are gone.
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

  /** Whether this reader's file is the current one or the one before it. */
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
