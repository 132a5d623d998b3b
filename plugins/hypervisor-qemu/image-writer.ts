// Writes a saved VM, which arrives as one stream, into two files: devices, and memory with holes for its zero pages.
import { open, rm, type FileHandle } from 'node:fs/promises'
import { MEMORY_ID } from './args.ts'
import { CaptureFailed } from '../../core/library/vmm/errors.ts'
import { MOST_STATE_BYTES } from '../../core/library/vmm/state-file.ts'
import { RamSplitter } from './ram-stream.ts'

// Twice what is gathered before it is written: a piece of the stream, 64 KiB from a socket, goes into it whole.
const BATCH_BYTES = 2 ** 22
/** the state is gathered up to this size before it is written; only the state of a VM with plugged memory is larger */
const STATE_BATCH_BYTES = 2 ** 21

export interface Written {
  readonly stateBytes: number
  /** without the holes */
  readonly memoryStoredBytes: number
  /** The memory was written as changes of its base. */
  readonly changes?: true
}

export interface ImageTarget {
  readonly statePath: string
  /** absent when the memory is in a file already */
  readonly memoryPath?: string
  readonly memoryFileBytes: number
  /** memory that is in no file, and so in the state */
  readonly hotplugBytes: number
}

/** Makes the files, which must not exist, from the stream. Removes them again when it fails. */
export async function writeImage (stream: AsyncIterable<Buffer>, target: ImageTarget): Promise<Written> {
  const { statePath, memoryPath } = target
  const made: string[] = []
  const handles: FileHandle[] = []
  const create = async (path: string): Promise<FileHandle> => {
    const handle = await open(path, 'wx', 0o600)
    made.push(path)
    handles.push(handle)
    return handle
  }
  try {
    const state = await create(statePath)
    const memory = memoryPath === undefined ? undefined : await create(memoryPath)
    await memory?.truncate(target.memoryFileBytes)
    const stateBytes = await split(stream, state, memory, target)
    const stored = await memory?.stat()
    return { stateBytes, memoryStoredBytes: (stored?.blocks ?? 0) * 512 }
  } catch (error) {
    for (const path of made) await rm(path, { force: true })
    throw error
  } finally {
    for (const handle of handles) await handle.close()
  }
}

async function split (stream: AsyncIterable<Buffer>, state: FileHandle, memory: FileHandle | undefined, { memoryFileBytes: limit, hotplugBytes }: ImageTarget): Promise<number> {
  // Each page of plugged memory has a few bytes before it.
  const maxStateBytes = MOST_STATE_BYTES + Math.ceil(hotplugBytes * 1.01)
  let gathered: Buffer[] = []
  let gatheredBytes = 0
  let stateBytes = 0
  const writeState = async (): Promise<void> => {
    const buffers = gathered
    gathered = []
    gatheredBytes = 0
    // Writes everything or fails: a disk that fills up takes only a part.
    await state.writeFile(Buffer.concat(buffers))
  }
  const batches = new Batches(memory)
  const splitter = new RamSplitter(MEMORY_ID, {
    state (bytes) {
      stateBytes += bytes.length
      gatheredBytes += bytes.length
      if (stateBytes > maxStateBytes) throw CaptureFailed(`QEMU sent more than ${maxStateBytes} bytes of state`)
      gathered.push(bytes)
    },
    page (offset, bytes) {
      if (memory === undefined) throw CaptureFailed('QEMU sent memory that is in a file already')
      if (offset + bytes.length > limit) throw CaptureFailed('QEMU sent more memory than the VM has')
      batches.add(offset, bytes)
    }
  })
  try {
    for await (const chunk of stream) {
      splitter.push(chunk)
      if (batches.full) await batches.write()
      if (gatheredBytes >= STATE_BATCH_BYTES) await writeState()
    }
    splitter.finish()
    await batches.write()
  } finally {
    await batches.settle()
  }
  // Usually all of it at once: without plugged memory it is a few hundred kilobytes.
  await writeState()
  return stateBytes
}

interface Run { readonly offset: number, readonly start: number, end: number }

/** Pages on their way to the file. One batch is written while the next is gathered. */
class Batches {
  readonly #file: FileHandle | undefined
  #content = Buffer.allocUnsafeSlow(BATCH_BYTES)
  #spare = Buffer.allocUnsafeSlow(BATCH_BYTES)
  #used = 0
  #runs: Run[] = []
  #writing: Promise<unknown> = Promise.resolve()

  constructor (file: FileHandle | undefined) { this.#file = file }

  get full (): boolean { return this.#used >= BATCH_BYTES / 2 }

  add (offset: number, page: Buffer): void {
    if (this.#used + page.length > BATCH_BYTES) throw CaptureFailed('a piece of QEMU\'s stream is too long')
    const start = this.#used
    this.#used += page.copy(this.#content, start)
    const last = this.#runs.at(-1)
    if (last !== undefined && last.offset + last.end - last.start === offset) last.end = this.#used
    else this.#runs.push({ offset, start, end: this.#used })
  }

  /** Begins to write what was gathered, once the batch before is written. */
  async write (): Promise<void> {
    await this.#writing
    const [file, content, runs] = [this.#file, this.#content, this.#runs]
    if (file === undefined) return
    this.#content = this.#spare
    this.#spare = content
    this.#used = 0
    this.#runs = []
    // All at once, since a trip through Node's threads takes longer than a write to the page cache.
    this.#writing = Promise.all(runs.map((run) => writeRun(file, content, run)))
    this.#writing.catch(() => {})
  }

  /** Resolves when nothing is being written; rejects when something could not be. */
  async settle (): Promise<void> { await this.#writing }
}

async function writeRun (file: FileHandle, content: Buffer, { offset, start, end }: Run): Promise<void> {
  for (let at = start; at < end;) at += (await file.write(content, at, end - at, offset + at - start)).bytesWritten
}
