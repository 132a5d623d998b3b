// The part of the NBD protocol that asks QEMU which parts of a disk are dirty in one of its bitmaps. A guest may control QEMU, so its messages are bounded and checked.
import type { Socket } from 'node:net'
import type { VmDiskRange } from '../../core/library/hypervisor.ts'
import { NbdFailed } from './errors.ts'

const TIMEOUT_MS = 5000
const NAME_MAX_BYTES = 256
/** for one answer with a list of ranges; QEMU sends no longer one */
const MAX_ANSWER_BYTES = 2 ** 20 + 64
/** for a whole disk: even one of 64 TiB with every second cluster written has fewer, as far as can be written in a second */
const MAX_RANGES = 2 ** 20
const MAX_REQUEST_BYTES = 2 ** 31

const SERVER_MAGIC = 0x4e42444d41474943n
const OPTION_MAGIC = 0x49484156454f5054n
const OPTION_REPLY_MAGIC = 0x3e889045565a9n
const REQUEST_MAGIC = 0x25609513
const STRUCTURED_REPLY_MAGIC = 0x668e33ef
const OPTION = { go: 7, structuredReply: 8, setMetaContext: 10 } as const
const REPLY = { ack: 1, info: 3, metaContext: 4 } as const
const INFO_EXPORT = 0
const COMMAND = { disconnect: 2, blockStatus: 7 } as const
const CHUNK = { none: 0, blockStatus: 5 } as const
const DONE = 1
const DIRTY = 1
const FIXED_NO_ZEROES = 3

export interface NbdBitmap {
  /** parts of the disk that are dirty at this moment */
  ranges (): Promise<readonly VmDiskRange[]>
  close (): void
}

export interface NbdBitmapOptions {
  readonly exportName: string
  readonly bitmap: string
  /** what one bit of the bitmap stands for */
  readonly granularityBytes: number
  /** most time for all ranges, `ms` */
  readonly timeoutMs: number
}

/** Destroys the socket when it fails. */
export async function openBitmap (socket: Socket, options: NbdBitmapOptions): Promise<NbdBitmap> {
  const { exportName, bitmap } = options
  const wire = new Wire(socket)
  try {
    const bytes = await wire.within(TIMEOUT_MS, async () => await shakeHands(wire, exportName, `qemu:dirty-bitmap:${bitmap}`))
    return {
      ranges: async () => await wire.within(options.timeoutMs, async () => await dirtyRanges(wire, bytes, options.granularityBytes)),
      close: () => {
        wire.send(request(COMMAND.disconnect, 0, 0))
        socket.end()
        socket.destroySoon()
      }
    }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Resolves with the size of the disk. */
async function shakeHands (wire: Wire, exportName: string, context: string): Promise<number> {
  const greeting = await wire.take(18)
  if (greeting.readBigUInt64BE(0) !== SERVER_MAGIC || greeting.readBigUInt64BE(8) !== OPTION_MAGIC) throw NbdFailed('it greets in another protocol')
  const flags = Buffer.alloc(4)
  flags.writeUInt32BE(FIXED_NO_ZEROES)
  wire.send(flags)
  await option(wire, OPTION.structuredReply, Buffer.alloc(0))
  const found = await option(wire, OPTION.setMetaContext, Buffer.concat([text(exportName), number(1), text(context)]))
  if (!found.some(({ type }) => type === REPLY.metaContext)) throw NbdFailed('it does not know the bitmap')
  const infos = await option(wire, OPTION.go, Buffer.concat([text(exportName), Buffer.alloc(2)]))
  const facts = infos.find(({ type, data }) => type === REPLY.info && data.length >= 12 && data.readUInt16BE(0) === INFO_EXPORT)
  if (facts === undefined) throw NbdFailed('it does not tell the size of the disk')
  const bytes = Number(facts.data.readBigUInt64BE(2))
  if (!Number.isSafeInteger(bytes)) throw NbdFailed('the size of the disk makes no sense')
  return bytes
}

interface OptionReply { readonly type: number, readonly data: Buffer }

/** The replies to an option, up to its acknowledgement. */
async function option (wire: Wire, code: number, data: Buffer): Promise<readonly OptionReply[]> {
  const head = Buffer.alloc(16)
  head.writeBigUInt64BE(OPTION_MAGIC, 0)
  head.writeUInt32BE(code, 8)
  head.writeUInt32BE(data.length, 12)
  wire.send(Buffer.concat([head, data]))
  const replies: OptionReply[] = []
  for (;;) {
    const reply = await wire.take(20)
    if (reply.readBigUInt64BE(0) !== OPTION_REPLY_MAGIC || reply.readUInt32BE(8) !== code) throw NbdFailed('it answers something else')
    const type = reply.readUInt32BE(12)
    const content = await wire.take(reply.readUInt32BE(16))
    if (type === REPLY.ack) return replies
    if (type >= 2 ** 31) throw NbdFailed(`it refuses option ${code} (${type - 2 ** 31}): ${content.toString('utf8', 0, NAME_MAX_BYTES)}`)
    if (replies.push({ type, data: content }) > 16) throw NbdFailed('it answers without end')
  }
}

async function dirtyRanges (wire: Wire, bytes: number, granularityBytes: number): Promise<readonly VmDiskRange[]> {
  const ranges: Array<{ readonly offset: number, bytes: number }> = []
  for (let at = 0; at < bytes;) {
    wire.send(request(COMMAND.blockStatus, at, Math.min(MAX_REQUEST_BYTES, bytes - at)))
    const list = await extents(wire)
    const before = at
    for (let i = 0; i + 8 <= list.length && at < bytes; i += 8) {
      const length = list.readUInt32BE(i)
      // Only the end of the disk may be within what a bit stands for. Shorter ones would be asked for one by one, for as long as the guest is paused.
      if (length < granularityBytes && at + length < bytes) throw NbdFailed('its list of ranges makes no sense')
      const last = ranges.at(-1)
      if ((list.readUInt32BE(i + 4) & DIRTY) !== 0) {
        if (last !== undefined && last.offset + last.bytes === at) last.bytes += length
        else ranges.push({ offset: at, bytes: length })
      }
      at += length
    }
    if (at === before || ranges.length > MAX_RANGES) throw NbdFailed('its list of ranges makes no sense')
  }
  return ranges
}

/** The parts of one answer, each 4 bytes of length and 4 of flags. */
async function extents (wire: Wire): Promise<Buffer> {
  let list: Buffer | undefined
  for (;;) {
    const head = await wire.take(20)
    if (head.readUInt32BE(0) !== STRUCTURED_REPLY_MAGIC) throw NbdFailed('it answers something else')
    const flags = head.readUInt16BE(4)
    const type = head.readUInt16BE(6)
    const data = await wire.take(head.readUInt32BE(16))
    if (type !== CHUNK.blockStatus && type !== CHUNK.none) throw NbdFailed(`it refuses to tell (${type})`)
    const isDone = (flags & DONE) !== 0
    // A part without a list only ends an answer.
    if (type === CHUNK.blockStatus ? list !== undefined : !isDone) throw NbdFailed('its answer is more than one list')
    if (type === CHUNK.blockStatus) list = data.subarray(4)
    if (isDone) return list ?? Buffer.alloc(0)
  }
}

function request (type: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(28)
  bytes.writeUInt32BE(REQUEST_MAGIC, 0)
  bytes.writeUInt16BE(type, 6)
  bytes.writeBigUInt64BE(BigInt(offset), 16)
  bytes.writeUInt32BE(length, 24)
  return bytes
}

function number (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function text (value: string): Buffer {
  return Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)])
}

/** Reads exact numbers of bytes. For one reader only. */
class Wire {
  readonly #socket: Socket
  readonly #parts: Buffer[] = []
  #has = 0
  #wanted: { readonly bytes: number, readonly resolve: (bytes: Buffer) => void, readonly reject: (error: unknown) => void } | undefined
  #over = false
  #why = 'it closed the connection'

  constructor (socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#parts.push(chunk)
      this.#has += chunk.length
      if (this.#has > 2 * MAX_ANSWER_BYTES) socket.destroy()
      this.#settle()
    })
    socket.on('error', () => {})
    const over = (): void => {
      this.#over = true
      this.#settle()
    }
    socket.on('end', over)
    socket.on('close', over)
  }

  send (bytes: Buffer): void { this.#socket.write(bytes) }

  async take (bytes: number): Promise<Buffer> {
    if (bytes > MAX_ANSWER_BYTES) throw NbdFailed('it sends too much')
    return await this.within(TIMEOUT_MS, async () => await new Promise<Buffer>((resolve, reject) => {
      this.#wanted = { bytes, resolve, reject }
      this.#settle()
    }))
  }

  /** Ends the connection when the work takes longer, which fails what it reads. */
  async within<T> (timeoutMs: number, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
      this.#why = `it did not answer within ${timeoutMs} ms`
      this.#socket.destroy()
    }, timeoutMs)
    try {
      return await work()
    } finally {
      clearTimeout(timer)
    }
  }

  #settle (): void {
    const wanted = this.#wanted
    if (wanted === undefined || (this.#has < wanted.bytes && !this.#over)) return
    this.#wanted = undefined
    if (this.#has < wanted.bytes) return wanted.reject(NbdFailed(this.#why))
    const all = Buffer.concat(this.#parts.splice(0))
    this.#has -= wanted.bytes
    if (this.#has > 0) this.#parts.push(all.subarray(wanted.bytes))
    wanted.resolve(all.subarray(0, wanted.bytes))
  }
}
