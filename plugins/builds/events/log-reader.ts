// Reads the log of a build from any line on, block by block, so that neither a long log nor a slow reader uses much memory.
import { open, type FileHandle } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { Signal } from '../../../core/jobs/signal.ts'

const BLOCK_BYTES = 64 * 1024
const NEWLINE = 0x0a

export interface LogLine {
  /** JSON of one event */
  readonly text: string
  /** position of the line's end in the file, from which the next line is read */
  readonly end: number
}

export interface FollowLog {
  readonly path: string
  /** a line's end, or 0 */
  readonly from: number
  /** whether to wait at the end for more; called each time the end is reached. After the first `false` there is a last read */
  readonly goesOn: () => boolean
  /** woken when there may be more, or `goesOn` may have changed */
  readonly wake: Signal
  readonly signal: AbortSignal
  /** yields no line when nothing has come for this long */
  readonly heartbeatMs: number
}

/** Lines as they come. An empty block is a heartbeat. Ends when `goesOn` returns false and everything is read, or on abort. */
export async function * followLog ({ path, from, goesOn, wake, signal, heartbeatMs }: FollowLog): AsyncGenerator<readonly LogLine[], void, void> {
  const file = await openLog(path)
  if (file === undefined) return
  try {
    const reader = new LineReader(file, from)
    while (!signal.aborted) {
      // Called before the read: what was written before the first `false` is then certainly read.
      const isOpen = goesOn()
      for (let lines = await reader.next(); lines !== undefined; lines = await reader.next()) {
        yield lines
        if (signal.aborted) return
      }
      if (!isOpen) return
      if (!await wake.wait(heartbeatMs, signal) && !signal.aborted) yield []
    }
  } finally {
    await file.close()
  }
}

/** The given position, when a line ends there; otherwise the beginning. */
export async function lineEnd (path: string, place: number): Promise<number> {
  const file = await openLog(path)
  if (file === undefined) return 0
  try {
    const byte = Buffer.alloc(1)
    const { bytesRead } = place > 0 ? await file.read(byte, 0, 1, place - 1) : { bytesRead: 0 }
    return bytesRead === 1 && byte[0] === NEWLINE ? place : 0
  } finally {
    await file.close()
  }
}

/** The last lines of output. */
export async function lastOutput (path: string, count: number): Promise<string[]> {
  const file = await openLog(path)
  if (file === undefined) return []
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - 4 * BLOCK_BYTES)
    const reader = new LineReader(file, from)
    const found: string[] = []
    for (let lines = await reader.next(); lines !== undefined; lines = await reader.next()) found.push(...lines.flatMap(({ text }) => outputOf(text)))
    return found.slice(-count)
  } finally {
    await file.close()
  }
}

/** Whether the line is complete: a full disk, or the server's death, may have cut it. */
export function isWhole (text: string): boolean {
  return text.startsWith('{') && text.endsWith('}')
}

function outputOf (text: string): string[] {
  if (!text.startsWith('{"type":"log"') || !isWhole(text)) return []
  const event: { content: string } = JSON.parse(text)
  return [event.content]
}

class LineReader {
  readonly #file: FileHandle
  readonly #buffer = Buffer.alloc(BLOCK_BYTES)
  #position: number
  /** the bytes of a line whose end has not been read */
  #rest: Buffer = Buffer.alloc(0)

  constructor (file: FileHandle, position: number) {
    this.#file = file
    this.#position = position
  }

  /** The lines that end in the next block; `undefined` at the end for now. */
  async next (): Promise<readonly LogLine[] | undefined> {
    for (;;) {
      const { bytesRead } = await this.#file.read(this.#buffer, 0, this.#buffer.length, this.#position)
      if (bytesRead === 0) return undefined
      const lines = this.#split(Buffer.concat([this.#rest, this.#buffer.subarray(0, bytesRead)]), this.#position - this.#rest.length)
      this.#position += bytesRead
      if (lines.length > 0) return lines
    }
  }

  #split (data: Buffer, place: number): LogLine[] {
    const lines: LogLine[] = []
    let from = 0
    for (let at = data.indexOf(NEWLINE); at >= 0; at = data.indexOf(NEWLINE, from)) {
      lines.push({ text: data.toString('utf8', from, at), end: place + at + 1 })
      from = at + 1
    }
    this.#rest = data.subarray(from)
    return lines
  }
}

async function openLog (path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
