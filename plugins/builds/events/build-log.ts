// Writes the log of one build: one JSON object per line, never changed afterwards, so that the position of a line's end is a permanent id.
import { open, type FileHandle } from 'node:fs/promises'
import type { Signal } from '../../../core/jobs/signal.ts'
import type { BuildStatus } from '../record.ts'

export interface BuildLogOptions {
  readonly path: string
  /** limit on lines of output; lines about the build's status are written beyond it too */
  readonly maxBytes: number
  /** called when the disk did not take some lines */
  readonly onError: (error: unknown) => void
}

/** Longer lines are split. */
const MAX_LINE_LENGTH = 16 * 1024
/** more than the longest line as JSON */
const TAIL_BYTES = 256 * 1024
const NEWLINE = 0x0a

export class BuildLog {
  readonly #options: BuildLogOptions
  readonly #file: FileHandle
  readonly #bells = new Set<Signal>()
  #pending: string[] = []
  #writing: Promise<void> | undefined
  #bytes: number
  #isCut = false
  #isTorn = false

  private constructor (options: BuildLogOptions, file: FileHandle, bytes: number) {
    this.#options = options
    this.#file = file
    this.#bytes = bytes
  }

  /** Continues a log of a server that was killed, perhaps in the middle of a line, which is dropped. */
  static async open (options: BuildLogOptions): Promise<BuildLog> {
    const file = await open(options.path, 'a+', 0o600)
    try {
      const whole = await endOfLines(file)
      await file.truncate(whole)
      return new BuildLog(options, file, whole)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Adds a line of output, and returns before it is on disk; lines beyond the limit are dropped. */
  line (line: string): void {
    for (let from = 0; from === 0 || from < line.length; from += MAX_LINE_LENGTH) this.#output(line.slice(from, from + MAX_LINE_LENGTH))
  }

  status (status: BuildStatus): void {
    this.#add({ type: 'status', status })
  }

  /** Rings a bell whenever there is more to read, and at the end. Returns a function that stops this. */
  watch (bell: Signal): () => void {
    this.#bells.add(bell)
    return () => { this.#bells.delete(bell) }
  }

  /** Resolves when everything has been written, or refused by the disk. */
  async flush (): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
  }

  async close (): Promise<void> {
    await this.flush()
    try {
      await this.#file.datasync()
    } catch (error) {
      this.#options.onError(error)
    }
    await this.#file.close()
  }

  /** Wakes all readers. */
  ring (): void {
    for (const bell of this.#bells) bell.notify()
  }

  #output (content: string): void {
    if (this.#isCut) return
    const { maxBytes } = this.#options
    this.#isCut = this.#bytes + content.length > maxBytes
    this.#add({ type: 'log', content: this.#isCut ? `the log ends here: it may have ${maxBytes} bytes` : content })
  }

  #add (event: { readonly type: 'log', readonly content: string } | { readonly type: 'status', readonly status: BuildStatus }): void {
    const { type, ...rest } = event
    const text = `${JSON.stringify({ type, timestamp: new Date().toISOString(), ...rest })}\n`
    this.#bytes += Buffer.byteLength(text)
    this.#pending.push(text)
    this.#writing ??= this.#write()
  }

  async #write (): Promise<void> {
    while (this.#pending.length > 0) {
      const text = this.#pending.join('')
      this.#pending = []
      try {
        await this.#file.appendFile(this.#isTorn ? `\n${text}` : text)
        this.#isTorn = false
      } catch (error) {
        // A part of it may have been written, so the next write begins a new line.
        this.#isTorn = true
        this.#options.onError(error)
      }
      this.ring()
    }
    this.#writing = undefined
  }
}

async function endOfLines (file: FileHandle): Promise<number> {
  const { size } = await file.stat()
  const from = Math.max(0, size - TAIL_BYTES)
  const tail = Buffer.alloc(size - from)
  const { bytesRead } = await file.read(tail, 0, tail.length, from)
  return from + tail.subarray(0, bytesRead).lastIndexOf(NEWLINE) + 1
}
