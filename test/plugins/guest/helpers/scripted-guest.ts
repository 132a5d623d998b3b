// The other end of a link, told by a test what to say: it answers the sync, collects what the host sends, and sends any bytes at all.
import { duplexPair, type Duplex } from 'node:stream'
import { pino } from 'pino'
import { StreamLink, type LinkOptions } from '../../../../plugins/guest/link/link.ts'

const MAGIC = Buffer.from([0xb7, 0x42, 0x45, 0x52, 0x54, 0x48, 0x31, 0x0a])
const SYNC_BYTES = 24

export interface SeenFrame { readonly type: number, readonly channel: number, readonly stream: number, readonly payload: Buffer }

/** A frame by the protocol's text, written apart from the product's own encoder. */
export function frame (type: number, channel: number, stream: number, payload: Buffer = Buffer.alloc(0), claimedLength = payload.length): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt32LE(claimedLength, 0)
  header.writeUInt32LE(channel, 4)
  header.writeUInt8(type, 8)
  header.writeUInt8(stream, 9)
  return Buffer.concat([header, payload])
}

export function field (tag: number, value: string | number | bigint | Buffer): Buffer {
  const bytes = Buffer.isBuffer(value) ? value : typeof value === 'string' ? Buffer.from(value) : u64(value)
  const header = Buffer.alloc(5)
  header.writeUInt8(tag, 0)
  header.writeUInt32LE(bytes.length, 1)
  return Buffer.concat([header, bytes])
}

function u64 (value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

export function u32 (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

export function hello (phase = 'waiting', ...more: Buffer[]): Buffer {
  return frame(1, 0, 0, Buffer.concat([
    field(2, 1), field(3, phase), field(35, '6.1.0-test'), field(38, 'boot-1'), field(36, 256 * 2 ** 20), field(34, 1234), field(18, 1), ...more
  ]))
}

/** Reads one field of a payload that the host sent. */
export function readField (payload: Buffer, wanted: number): Buffer | undefined {
  for (let at = 0; at < payload.length;) {
    const length = payload.readUInt32LE(at + 1)
    if (payload.readUInt8(at) === wanted) return payload.subarray(at + 5, at + 5 + length)
    at += 5 + length
  }
  return undefined
}

export class ScriptedGuest {
  readonly link: StreamLink
  /** the guest's end of the stream */
  readonly end: Duplex
  /** the host's end, to look for what the link leaves on it */
  readonly hostEnd: Duplex
  readonly frames: SeenFrame[] = []
  #bytes: Buffer = Buffer.alloc(0)
  #synced = false
  readonly #answersSync: boolean
  readonly #watchers = new Set<() => void>()

  constructor (options: Partial<LinkOptions> & { readonly answersSync?: boolean, readonly firstWords?: Buffer } = {}) {
    const [hostEnd, end] = duplexPair()
    this.hostEnd = hostEnd
    this.end = end
    this.#answersSync = options.answersSync ?? true
    end.on('data', (chunk: Buffer) => { this.#read(chunk, options.firstWords ?? hello()) })
    end.on('error', () => {})
    this.link = new StreamLink(hostEnd, { log: pino({ level: 'silent' }), answerTimeoutMs: 60_000, ...options })
  }

  send (...frames: Buffer[]): void { this.end.write(Buffer.concat(frames)) }

  /** Sends a frame until the link has ended: how many it takes in a second depends on the machine. */
  async flood (one: Buffer): Promise<void> {
    const round = Buffer.concat(Array.from({ length: 30_000 }, () => one))
    const closed = this.link.closed.then(() => true)
    for (let isOver = false; !isOver;) isOver = await Promise.race([closed, new Promise<boolean>((resolve) => { this.end.write(round, () => { resolve(false) }) })])
  }

  /** The first frame of the host that `fits`, now or later. */
  async seen (fits: (frame: SeenFrame) => boolean): Promise<SeenFrame> {
    for (;;) {
      const found = this.frames.find(fits)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        const watcher = () => { this.#watchers.delete(watcher); resolve() }
        this.#watchers.add(watcher)
      })
    }
  }

  /** The number of the channel that the host opened for `kind`. */
  async opened (kind: string): Promise<number> {
    return (await this.seen((one) => one.type === 2 && readField(one.payload, 1)?.toString() === kind)).channel
  }

  #read (chunk: Buffer, firstWords: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    if (!this.#synced) this.#takeSync(firstWords)
    if (this.#synced) this.#takeFrames()
    for (const watcher of [...this.#watchers]) watcher()
  }

  #takeSync (firstWords: Buffer): void {
    const at = this.#bytes.indexOf(MAGIC)
    if (!this.#answersSync || at < 0 || this.#bytes.length < at + SYNC_BYTES) return
    this.#synced = true
    this.end.write(Buffer.concat([this.#bytes.subarray(at, at + SYNC_BYTES), firstWords]))
    this.#bytes = this.#bytes.subarray(at + SYNC_BYTES)
  }

  #takeFrames (): void {
    while (this.#bytes.length >= 12) {
      const end = 12 + this.#bytes.readUInt32LE(0)
      if (this.#bytes.length < end) return
      this.frames.push({
        type: this.#bytes.readUInt8(8), channel: this.#bytes.readUInt32LE(4), stream: this.#bytes.readUInt8(9), payload: this.#bytes.subarray(12, end)
      })
      this.#bytes = this.#bytes.subarray(end)
    }
  }
}

/** What a guest answers to what it does not do. */
export const refusal = (message: string, errno: number) => Buffer.concat([field(30, message), field(31, errno)])
