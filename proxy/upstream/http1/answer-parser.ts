// Finds the answers in the bytes of an origin's connection. It accepts nothing that another reader could read differently: anything but
// one clear answer ends the connection, since a lenient reader could take part of it for the answer to somebody's next request.
import { readAnswerHead, type AnswerHead } from './answer-head.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'
import { FRAMING, readFields } from './fields.ts'

export interface AnswerSink {
  answerBegan (head: AnswerHead): void
  /** A piece of the body: a view of memory that is overwritten after the call. */
  answerBody (view: Buffer): void
  /** The answer is complete; its trailers are names and values in turn. */
  answerEnded (trailers: readonly string[]): void
}

type Phase = 'nothing' | 'head' | 'length' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' | 'close'

const NOTHING = Buffer.alloc(0)
const EMPTY_LINE = Buffer.from('\r\n\r\n')
const LINE_END = Buffer.from('\r\n')
const LF = 0x0a
const CR = 0x0d
const PROTOCOL = 'HTTP/1.'
// 13 digits are less than 2^53. After a semicolon come extensions, which nobody uses: names, and values that are tokens.
const CHUNK_SIZE = /^([\da-f]{1,13})(?:;[!#$%&'*+.^_`|~\w-]+(?:=[!#$%&'*+.^_`|~\w-]+)?)*$/i
const CHUNK_SIZE_BYTES = 4096

export class AnswerParser {
  readonly #sink: AnswerSink
  readonly #headerBytes: number
  #phase: Phase = 'nothing'
  /** bytes that cannot be parsed until more arrive */
  #kept: Buffer | undefined
  /** bytes of the body or chunk that are still to come */
  #left = 0
  #toHead = false
  #upgrade = false
  /** bytes of early answers (1xx), which count as one header with the one that they precede */
  #earlyBytes = 0

  /** @param headerBytes of the largest header, and of the largest trailers */
  constructor (sink: AnswerSink, headerBytes: number) {
    this.#sink = sink
    this.#headerBytes = headerBytes
  }

  /** One answer is expected next. `upgrade`: it may be a 101, after which the bytes are no longer HTTP and count as body. */
  expect (toHead: boolean, upgrade: boolean): void {
    this.#phase = 'head'
    this.#toHead = toHead
    this.#upgrade = upgrade
    this.#earlyBytes = 0
  }

  /** Throws a BadAnswer. */
  read (view: Buffer): void {
    let rest = this.#kept === undefined ? view : Buffer.concat([this.#kept, view])
    this.#kept = undefined
    while (rest.length > 0) {
      const taken = this.#take(rest)
      if (taken === 0) {
        this.#keep(rest)
        return
      }
      rest = taken === rest.length ? NOTHING : rest.subarray(taken)
    }
  }

  /** The origin will send no more. Some bodies end that way; any other answer is cut off. */
  close (): void {
    if (this.#phase === 'close') this.#end([])
  }

  /** The number of bytes that were parsed; 0 when more are needed. */
  #take (rest: Buffer): number {
    switch (this.#phase) {
      case 'head': return this.#takeHead(rest)
      case 'length': return this.#takeBody(rest)
      case 'chunk size': return this.#takeChunkSize(rest)
      case 'chunk': return this.#takeChunk(rest)
      case 'chunk end': return this.#takeChunkEnd(rest)
      case 'trailers': return this.#takeTrailers(rest)
      case 'close':
        this.#sink.answerBody(rest)
        return rest.length
      default: throw new BadAnswer('there are bytes after the end of an answer')
    }
  }

  #takeHead (rest: Buffer): number {
    const end = rest.indexOf(EMPTY_LINE)
    if (end < 0) return 0
    const taken = end + EMPTY_LINE.length
    if (this.#earlyBytes + taken > this.#headerBytes) throw new BadAnswer('the header is too large')
    const head = readAnswerHead(rest.toString('latin1', 0, end), this.#toHead)
    if (head.status < 200 && head.status !== 101) {
      if (!head.persistent) throw new BadAnswer('an early answer ends the connection')
      this.#earlyBytes += taken
      return taken
    }
    if (head.status === 101 && !this.#upgrade) throw new BadAnswer('the protocol changes, which nobody asked for')
    this.#begin(head)
    return taken
  }

  #begin (head: AnswerHead): void {
    this.#left = typeof head.body === 'number' ? head.body : 0
    if (head.status === 101 || head.body === 'close') this.#phase = 'close'
    else if (head.body === 'chunked') this.#phase = 'chunk size'
    else this.#phase = 'length'
    this.#sink.answerBegan(head)
    if (this.#phase === 'length' && this.#left === 0) this.#end([])
  }

  #takeBody (rest: Buffer): number {
    const taken = this.#pass(rest)
    if (this.#left === 0) this.#end([])
    return taken
  }

  #takeChunkSize (rest: Buffer): number {
    // Nearly all sizes are digits and nothing else, and one read can have ten thousand of them.
    let size = 0
    let digits = 0
    for (let digit = hexadecimal(rest[0]); digit >= 0 && digits < 13; digit = hexadecimal(rest[++digits])) size = size * 16 + digit
    if (digits > 0 && rest[digits] === CR && rest[digits + 1] === LF) return this.#chunkOf(size, digits + LINE_END.length)
    return this.#takeLongChunkSize(rest)
  }

  #takeLongChunkSize (rest: Buffer): number {
    const end = rest.indexOf(LINE_END)
    if (end < 0) return 0
    const size = CHUNK_SIZE.exec(rest.toString('latin1', 0, end))?.[1]
    if (size === undefined || end > CHUNK_SIZE_BYTES) throw new BadAnswer('a chunk has no size')
    return this.#chunkOf(Number.parseInt(size, 16), end + LINE_END.length)
  }

  #chunkOf (size: number, taken: number): number {
    this.#left = size
    this.#phase = size === 0 ? 'trailers' : 'chunk'
    return taken
  }

  #takeChunk (rest: Buffer): number {
    const taken = this.#pass(rest)
    if (this.#left === 0) this.#phase = 'chunk end'
    return taken
  }

  #takeChunkEnd (rest: Buffer): number {
    if (rest.length < LINE_END.length) return 0
    if (rest[0] !== CR || rest[1] !== LF) throw new BadAnswer('a chunk is longer than its size')
    this.#phase = 'chunk size'
    return LINE_END.length
  }

  #takeTrailers (rest: Buffer): number {
    if (rest.length < LINE_END.length) return 0
    if (rest[0] === CR && rest[1] === LF) {
      this.#end([])
      return LINE_END.length
    }
    const end = rest.indexOf(EMPTY_LINE)
    if (end < 0) return 0
    if (end > this.#headerBytes) throw new BadAnswer('the trailers are too large')
    const trailers = readFields(rest.toString('latin1', 0, end).split('\r\n'), 0)
    if (trailers.some((text, index) => index % 2 === 0 && FRAMING.test(text))) throw new BadAnswer('trailers say where the body ends, and some readers believe them')
    this.#end(trailers)
    return end + EMPTY_LINE.length
  }

  #pass (rest: Buffer): number {
    const taken = Math.min(this.#left, rest.length)
    this.#left -= taken
    this.#sink.answerBody(taken === rest.length ? rest : rest.subarray(0, taken))
    return taken
  }

  #end (trailers: readonly string[]): void {
    this.#phase = 'nothing'
    this.#sink.answerEnded(trailers)
  }

  #keep (rest: Buffer): void {
    const most = this.#phase === 'chunk size' ? CHUNK_SIZE_BYTES : this.#headerBytes
    if (rest.length > most) throw new BadAnswer('a header or the size of a chunk is too large')
    // Otherwise bytes that are not HTTP would be waited for: their empty line never comes.
    if (this.#phase === 'head' && (!startsAsHttp(rest) || hasBareLineFeed(rest))) throw new BadAnswer('the answer does not begin with a status line')
    this.#kept = Buffer.from(rest)
  }
}

/** The value of a digit; -1 for another character. */
function hexadecimal (byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

function startsAsHttp (bytes: Buffer): boolean {
  const length = Math.min(bytes.length, PROTOCOL.length)
  return bytes.toString('latin1', 0, length) === PROTOCOL.slice(0, length)
}

function hasBareLineFeed (bytes: Buffer): boolean {
  const at = bytes.indexOf(LF)
  return at >= 0 && bytes[at - 1] !== CR
}
