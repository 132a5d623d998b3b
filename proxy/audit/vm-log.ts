// One VM's part of the log of requests, with numbers of its own.
import { appendFile, truncate } from 'node:fs/promises'
import { createSegment, endOf, readSegments, removeSegment, type Segment } from './segments.ts'

export class VmLog {
  readonly folder: string
  /** the last one is written to */
  readonly segments: Segment[]
  #bytes: number
  #seq: number | undefined
  #waiting: string[] = []
  #waitingBytes = 0

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

  get waitingBytes (): number {
    return this.#waitingBytes
  }

  /** Gives a line of JSON, a character a byte and with a line feed at its end, the next number. It is on disk after `write`. @returns the bytes that this adds to the waiting ones */
  add (line: string): number {
    this.#seq ??= this.#lastSeq()
    const numbered = `{"seq":${++this.#seq},${line.slice(1)}`
    this.#waiting.push(numbered)
    this.#waitingBytes += numbered.length
    return numbered.length
  }

  /** Writes the waiting lines; lines that cannot be written keep waiting. @param segmentBytes size at which a new file is begun @returns bytes that were written */
  async write (segmentBytes: number): Promise<number> {
    let written = 0
    while (this.#waiting.length > 0) written += await this.#writeSome(segmentBytes)
    return written
  }

  /** Writes as many lines as fit into one file. */
  async #writeSome (segmentBytes: number): Promise<number> {
    const current = this.#current(segmentBytes)
    let count = 0
    let bytes = 0
    for (const line of this.#waiting) {
      if (count > 0 && current.bytes + bytes >= segmentBytes) break
      bytes += line.length
      count++
    }
    try {
      await appendFile(current.path, this.#waiting.slice(0, count).join(''), { mode: 0o640, encoding: 'latin1' })
    } catch (error) {
      // On a full disk only a part may have been written: it is cut off, and all of it is written again.
      await truncate(current.path, current.bytes).catch(() => {})
      throw error
    }
    this.#waiting.splice(0, count)
    this.#waitingBytes -= bytes
    current.bytes += bytes
    this.#bytes += bytes
    return bytes
  }

  /** Removes the oldest file. @returns how many entries went with it */
  dropOldest (): number {
    // The name of the current file holds the next number, also over a restart: the new file is made before the last one is removed.
    if (this.segments.length === 1) this.#begin((this.#seq ??= this.#lastSeq()) + 1 - this.#waiting.length)
    const [oldest, next] = this.segments
    if (oldest === undefined || next === undefined) return 0
    removeSegment(oldest)
    this.segments.shift()
    this.#bytes -= oldest.bytes
    return next.first - oldest.first
  }

  #current (segmentBytes: number): Segment {
    const last = this.segments.at(-1)
    if (last !== undefined && last.bytes < segmentBytes) return last
    return this.#begin((this.#seq ?? 0) + 1 - this.#waiting.length)
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
    const last = this.segments.at(-1)
    return last === undefined ? 0 : endOf(last)
  }
}
