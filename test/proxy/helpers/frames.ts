// Frames of HTTP/2 byte by byte, for peers that no library would let speak (RFC 9113, 4.1; RFC 7541, 6.2).

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const END_STREAM = 1
export const ACK = 1
export const END_HEADERS = 4

/** One frame. */
export function frame (type: number, flags: number, stream: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

/** A number of four bytes, as most frames have one. */
export function word (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

/** Header lines as literals without an index, names and values as they are, so that nothing checks them. */
export function block (lines: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(lines.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]))
}

/** A HEADERS frame, with CONTINUATION frames when it is larger than the largest frame. */
export function headers (stream: number, flags: number, lines: readonly (readonly [string, string])[]): Buffer {
  const whole = block(lines)
  const most = 16_384
  const parts = [frame(HEADERS, flags | (whole.length <= most ? END_HEADERS : 0), stream, whole.subarray(0, most))]
  for (let at = most; at < whole.length; at += most) parts.push(frame(CONTINUATION, at + most >= whole.length ? END_HEADERS : 0, stream, whole.subarray(at, at + most)))
  return Buffer.concat(parts)
}

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly body: Buffer
}

/** Takes frames out of a stream of bytes. */
export class FrameReader {
  #kept = Buffer.alloc(0)

  push (piece: Buffer): Frame[] {
    this.#kept = Buffer.concat([this.#kept, piece])
    const frames: Frame[] = []
    while (this.#kept.length >= 9) {
      const length = this.#kept.readUIntBE(0, 3)
      if (this.#kept.length < 9 + length) break
      frames.push({ type: this.#kept[3] ?? 0, flags: this.#kept[4] ?? 0, stream: this.#kept.readUInt32BE(5) & 0x7fffffff, body: this.#kept.subarray(9, 9 + length) })
      this.#kept = this.#kept.subarray(9 + length)
    }
    return frames
  }
}

function text (value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([integer(bytes.length), bytes])
}

/** A length with a prefix of seven bits, without Huffman coding. */
function integer (value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let rest = value - 127
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push(rest % 128 + 128)
  bytes.push(rest)
  return Buffer.from(bytes)
}
