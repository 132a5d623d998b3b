// The frame codec: encodes headers, and splits the guest's byte stream into frames without copying their content.
import { HEADER_BYTES, MAX_PAYLOAD_BYTES } from './limits.ts'
import { ProtocolViolation } from './violation.ts'

export const FrameType = {
  nop: 0, hello: 1, open: 2, data: 3, eof: 4, credit: 5, control: 6, result: 7, event: 8
} as const
export type FrameType = typeof FrameType[keyof typeof FrameType]

/** The frames that a guest may send, with their payload checked in length only. DATA comes in pieces as they arrive. */
export interface FrameSink {
  nop (): void
  data (channel: number, stream: number, piece: Buffer): void
  eof (channel: number, stream: number): void
  credit (channel: number, stream: number, bytes: number): void
  message (type: 1 | 7 | 8, channel: number, payload: Buffer): void
}

export function encodeHeader (type: FrameType, channel: number, stream: number, length: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(length, 0)
  header.writeUInt32LE(channel, 4)
  header[8] = type
  header[9] = stream
  return header
}

export function encodeFrame (type: FrameType, channel: number, stream: number, payload: Buffer): Buffer {
  if (payload.length > MAX_PAYLOAD_BYTES) throw new RangeError(`a frame of ${payload.length} bytes does not fit`)
  return Buffer.concat([encodeHeader(type, channel, stream, payload.length), payload])
}

export function encodeCredit (channel: number, stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32LE(bytes)
  return encodeFrame(FrameType.credit, channel, stream, payload)
}

interface Header { readonly length: number, readonly channel: number, readonly type: number, readonly stream: number }

function decodeHeader (bytes: Buffer): Header {
  const header = { length: bytes.readUInt32LE(0), channel: bytes.readUInt32LE(4), type: bytes.readUInt8(8), stream: bytes.readUInt8(9) }
  if (header.length > MAX_PAYLOAD_BYTES) throw new ProtocolViolation(`announced a frame of ${header.length} bytes; ${MAX_PAYLOAD_BYTES} are allowed`)
  if (bytes.readUInt16LE(10) !== 0) throw new ProtocolViolation('set reserved bits of a frame header')
  checkPlace(header)
  return header
}

/** Checks whether this type of frame with this length is allowed on this channel and stream. */
function checkPlace ({ length, channel, type, stream }: Header): void {
  const fail = (why: string): never => { throw new ProtocolViolation(`sent a frame of type ${type} ${why}`) }
  switch (type) {
    case FrameType.nop: if (length !== 0) fail('with content'); return
    case FrameType.hello:
    case FrameType.event: if (channel !== 0) fail('on a channel'); break
    case FrameType.data:
    case FrameType.eof:
    case FrameType.credit:
      if (channel === 0) fail('on the connection itself')
      if (type === FrameType.credit ? stream !== 0 : stream !== 1 && stream !== 2) fail(`on stream ${stream}`)
      if (type === FrameType.eof && length !== 0) fail('with content')
      if (type === FrameType.credit && length !== 4) fail(`with ${length} bytes`)
      return
    case FrameType.result: if (channel === 0) fail('on the connection itself'); break
    default: fail('which a guest does not send')
  }
  if (stream !== 0) fail(`on stream ${stream}`)
}

/** Feeds on chunks of any size; throws `ProtocolViolation` at the first wrong byte, after which it must not be used again. */
export class FrameParser {
  readonly #sink: FrameSink
  readonly #headerBytes = Buffer.alloc(HEADER_BYTES)
  #headerLength = 0
  #header: Header | undefined
  #missing = 0
  /** collects a message that arrives in pieces, since its whole payload is needed; DATA is passed on in pieces */
  #payload: Buffer | undefined

  constructor (sink: FrameSink) { this.#sink = sink }

  push (chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      at = this.#header === undefined ? this.#takeHeader(chunk, at) : this.#takePayload(chunk, at, this.#header)
    }
  }

  #takeHeader (chunk: Buffer, at: number): number {
    let bytes: Buffer = this.#headerBytes
    let end = at + HEADER_BYTES
    if (this.#headerLength === 0 && end <= chunk.length) {
      bytes = chunk.subarray(at, end)
    } else {
      end = Math.min(chunk.length, at + HEADER_BYTES - this.#headerLength)
      this.#headerLength += chunk.copy(this.#headerBytes, this.#headerLength, at, end)
      if (this.#headerLength < HEADER_BYTES) return end
      this.#headerLength = 0
    }
    const header = decodeHeader(bytes)
    this.#missing = header.length
    if (header.length > 0) this.#header = header
    else this.#deliver(header, Buffer.alloc(0))
    return end
  }

  #takePayload (chunk: Buffer, at: number, header: Header): number {
    const end = Math.min(chunk.length, at + this.#missing)
    const piece = chunk.subarray(at, end)
    this.#missing -= piece.length
    if (header.type === FrameType.data) {
      if (this.#missing === 0) this.#header = undefined
      this.#sink.data(header.channel, header.stream, piece)
      return end
    }
    if (piece.length === header.length) {
      this.#header = undefined
      this.#deliver(header, piece)
      return end
    }
    this.#payload ??= Buffer.alloc(header.length)
    piece.copy(this.#payload, header.length - this.#missing - piece.length)
    if (this.#missing === 0) {
      const payload = this.#payload
      this.#payload = undefined
      this.#header = undefined
      this.#deliver(header, payload)
    }
    return end
  }

  #deliver (header: Header, payload: Buffer): void {
    const { type, channel, stream } = header
    switch (type) {
      case FrameType.nop: this.#sink.nop(); break
      case FrameType.data: this.#sink.data(channel, stream, payload); break
      case FrameType.eof: this.#sink.eof(channel, stream); break
      case FrameType.credit: this.#sink.credit(channel, stream, payload.readUInt32LE(0)); break
      case FrameType.hello:
      case FrameType.result:
      case FrameType.event: this.#sink.message(type, channel, payload); break
    }
  }
}
