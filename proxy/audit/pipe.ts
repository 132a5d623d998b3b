// The pipe that log lines take from a worker to its parent: both ends.
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { vmOfLine } from './line.ts'
import type { AuditSink } from './log.ts'

/** The worker's end. */
export function openPipe (descriptor: number): AuditSink {
  const socket = new Socket({ fd: descriptor, readable: false, writable: true })
  // The parent is gone, and this process ends with it.
  socket.on('error', () => socket.destroy())
  return {
    // Lines that have not left keep the others waiting: requests are refused then, and not left out of the log.
    write: (lines, done) => { socket.write(lines, error => { if (error === null || error === undefined) done() }) },
    close: async () => { await new Promise<void>(resolve => { socket.end(resolve) }) }
  }
}

/** More than the longest line. A worker that writes more without a line feed is broken. */
const MOST_LINE_BYTES = 64 * 1024

export interface LineTaker {
  /** @param line with its line feed; a character is a byte */
  add (vm: string, line: string): void
  /** Resolves when more lines may be added. */
  room (): Promise<void>
}

export interface PipeReader {
  /** bytes that were taken so far */
  readonly taken: number
  readonly ended: boolean
  /** Resolves when this many bytes were taken, or no more will come. */
  reached (bytes: number): Promise<void>
}

/** The parent's end: hands over every line with the VM that it is about. An invalid line is left out: a worker may have been killed while it wrote one. */
export function readPipe (pipe: Readable, taker: LineTaker, onBadLine: () => void): PipeReader {
  let rest = ''
  let taken = 0
  let ended = false
  let waiting: { readonly bytes: number, readonly resolve: () => void }[] = []
  const tell = (): void => {
    const reached = waiting.filter(({ bytes }) => ended || bytes <= taken)
    waiting = waiting.filter(entry => !reached.includes(entry))
    for (const { resolve } of reached) resolve()
  }
  const take = async (): Promise<void> => {
    for await (const chunk of pipe) {
      const text = rest + String(chunk)
      let begin = 0
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', begin)) {
        const line = text.slice(begin, end + 1)
        begin = end + 1
        const vm = vmOfLine(line)
        if (vm === undefined) onBadLine()
        else taker.add(vm, line)
      }
      rest = text.slice(begin)
      if (rest.length > MOST_LINE_BYTES) rest = ''
      await taker.room()
      taken += String(chunk).length
      tell()
    }
  }
  // Lines are ASCII; whatever else a broken worker sends stays a character for a byte.
  pipe.setEncoding('latin1')
  take().catch(onBadLine).finally(() => {
    ended = true
    tell()
  })
  return {
    get taken () { return taken },
    get ended () { return ended },
    reached: async bytes => { if (!ended && taken < bytes) await new Promise<void>(resolve => { waiting.push({ bytes, resolve }) }) }
  }
}
