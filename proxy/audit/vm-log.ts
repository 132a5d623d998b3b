// One VM's part of the log of requests, with numbers of its own.
import { appendFile, truncate } from 'node:fs/promises'
import { createSegment, endOf, readSegments, removeSegment, type Segment } from './segments.ts'

export class VmLog {
  readonly folder: string
  /** the last one is written to */
  readonly segments: Segment[]
  #bytes: number
  /** number of the last entry on disk; undefined: the files were not asked yet */
  #seq: number | undefined
  #waiting: string[] = []
  /** of all lines that were written so far, as they were taken */
  writtenBytes = 0

  /** @param folder need not exist yet */
  constructor (folder: string, segments: Segment[] = []) {
    this.folder = folder
    this.segments = segments
    this.#bytes = segments.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  static open (folder: string): VmLog {
    return new VmLog(folder, readSegments(folder))
  }

  /** on disk */
  get bytes (): number {
    return this.#bytes
  }

  /** Takes a line of JSON, a character a byte and with a line feed at its end. It has its number, and is on disk, after `write`. Touches no file: whoever records a request must not fail for that. */
  add (line: string): void {
    this.#waiting.push(line)
  }

  /** Numbers the waiting lines and writes them; lines that cannot be written keep waiting. @param segmentBytes size at which a new file is begun */
  async write (segmentBytes: number): Promise<void> {
    while (this.#waiting.length > 0) await this.#writeSome(segmentBytes)
  }

  /** Writes as many lines as fit into one file. */
  async #writeSome (segmentBytes: number): Promise<void> {
    const last = this.#lastSeq()
    const current = this.#current(segmentBytes, last + 1)
    const lines: string[] = []
    let bytes = 0
    for (const line of this.#waiting) {
      if (lines.length > 0 && current.bytes + bytes >= segmentBytes) break
      const numbered = `{"seq":${last + lines.length + 1},${line.slice(1)}`
      bytes += numbered.length
      lines.push(numbered)
    }
    try {
      await appendFile(current.path, lines.join(''), { mode: 0o640, encoding: 'latin1' })
    } catch (error) {
      // On a full disk only a part may have been written: it is cut off, and all of it is written again.
      await truncate(current.path, current.bytes).catch(() => {})
      throw error
    }
    for (const line of this.#waiting.splice(0, lines.length)) this.writtenBytes += line.length
    this.#seq = last + lines.length
    current.bytes += bytes
    this.#bytes += bytes
  }

  /** Removes the oldest file. @returns how many entries went with it */
  dropOldest (): number {
    // The name of the current file holds the next number, also over a restart: the new file is made before the last one is removed.
    if (this.segments.length === 1) this.#begin(this.#lastSeq() + 1)
    const [oldest, next] = this.segments
    if (oldest === undefined || next === undefined) return 0
    removeSegment(oldest)
    this.segments.shift()
    this.#bytes -= oldest.bytes
    return next.first - oldest.first
  }

  #current (segmentBytes: number, next: number): Segment {
    const last = this.segments.at(-1)
    return last !== undefined && last.bytes < segmentBytes ? last : this.#begin(next)
  }

  #begin (first: number): Segment {
    const known = this.segments.at(-1)
    if (known?.first === first) return known
    const segment = createSegment(this.folder, first)
    this.segments.push(segment)
    this.#bytes += segment.bytes
    return segment
  }

  #lastSeq (): number {
    this.#seq ??= this.#readLastSeq()
    return this.#seq
  }

  #readLastSeq (): number {
    const last = this.segments.at(-1)
    if (last === undefined) return 0
    const before = last.bytes
    const seq = endOf(last)
    this.#bytes += last.bytes - before
    return seq
  }
}
