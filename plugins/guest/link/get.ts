// Files and folders on their way out of the guest: splits the stream of a `get` into entries, each with a Readable of its content.
import { Readable } from 'node:stream'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { GuestEntry } from '../contract.ts'
import { guestRefused } from '../errors.ts'
import { reasonOf } from './cancelled.ts'
import type { Channel } from './channel.ts'
import { FieldReader, Tag } from './fields.ts'
import { MAX_ENTRIES, MAX_PATH_BYTES, MAX_PAYLOAD_BYTES } from './limits.ts'
import { decodeFacts } from './messages.ts'
import { ProtocolViolation } from './violation.ts'

const TOO_LARGE = 'File too large'
const EFBIG = 27

type Translate = (error: unknown) => unknown

/** Reads exact amounts from a stream that comes in pieces of any size. */
class ByteSource {
  /** of the request */
  readonly result: Promise<void>
  readonly #pieces: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor (channel: Channel<void>, signal: AbortSignal | undefined) {
    this.result = unlessAborted(signal, channel.result)
    this.result.catch(() => {})
    this.#pieces = channel.output(1)[Symbol.asyncIterator]()
  }

  /** The next bytes, at most `limit` of them; `undefined` at the end. */
  async some (limit: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#pieces.next()
      if (next.done === true) return undefined
      this.#rest = next.value
    }
    const piece = this.#rest.subarray(0, limit)
    this.#rest = this.#rest.subarray(piece.length)
    return piece
  }

  /** Exactly `length` bytes; `undefined` when the stream ends before the first of them. */
  async exactly (length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    let missing = length
    while (missing > 0) {
      const piece = await this.some(missing)
      if (piece === undefined) {
        return parts.length === 0 ? undefined : await this.cutOff()
      }
      parts.push(piece)
      missing -= piece.length
    }
    return Buffer.concat(parts)
  }

  /** The stream ended too early. When the guest gave a reason, that is the error. */
  async cutOff (): Promise<never> {
    await this.result
    throw new ProtocolViolation('ended a list of files in the middle of one')
  }
}

/** A path that stays under the folder in which a client puts it. */
function checkedPath (path: string): string {
  const parts = path.split('/')
  if (path !== '' && parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new ProtocolViolation('sent a file whose path leaves its folder')
  }
  return path
}

function decodeEntry (payload: Buffer): GuestEntry {
  const fields = new FieldReader(payload)
  const path = checkedPath(fields.text(Tag.path, MAX_PATH_BYTES) ?? '')
  const error = fields.prose(Tag.error)
  if (error !== undefined) return { exists: true, path, error }
  const facts = decodeFacts(fields)
  if (facts.type === undefined) throw new ProtocolViolation('left out the type of a file')
  if (facts.type === 'file' && facts.sizeBytes === undefined) throw new ProtocolViolation('left out the size of a file')
  return { ...facts, path }
}

async function * contentOf (source: ByteSource, left: { bytes: number }, translate: Translate): AsyncGenerator<Buffer> {
  try {
    while (left.bytes > 0) {
      const piece = await source.some(left.bytes) ?? await source.cutOff()
      left.bytes -= piece.length
      yield piece
    }
  } catch (error) {
    throw translate(error)
  }
}

async function * entriesOf (source: ByteSource, translate: Translate): AsyncGenerator<GuestEntry> {
  for (let count = 0; ; count++) {
    const length = await source.exactly(4)
    if (length === undefined) return
    if (count >= MAX_ENTRIES) throw new ProtocolViolation(`sent more than ${MAX_ENTRIES} files`)
    const payload = await entryPayload(source, length.readUInt32LE())
    const entry = decodeEntry(payload)
    if (entry.type !== 'file') {
      yield entry
      continue
    }
    const left = { bytes: entry.sizeBytes ?? 0 }
    if (left.bytes === Number.MAX_SAFE_INTEGER) {
      yield { exists: true, path: entry.path, error: TOO_LARGE }
      // Only a guest of an older system goes on with the content of such a file, which has no end.
      throw guestRefused(`${entry.path}: ${TOO_LARGE}`, { errno: EFBIG })
    }
    const content = Readable.from(contentOf(source, left, translate), { objectMode: false })
    content.on('error', () => {})
    yield { ...entry, content }
    await skipRest(source, left, content)
  }
}

async function entryPayload (source: ByteSource, length: number): Promise<Buffer> {
  if (length > MAX_PAYLOAD_BYTES) throw new ProtocolViolation(`announced an entry of ${length} bytes`)
  return await source.exactly(length) ?? await source.cutOff()
}

/** Drops the rest of an entry: its reader has gone on to the next one. */
async function skipRest (source: ByteSource, left: { bytes: number }, content: Readable): Promise<void> {
  if (!content.readableEnded && !content.closed) {
    const closed = new Promise((resolve) => content.once('close', resolve))
    content.destroy()
    // Its pending read must end before the next begins: the bytes have one reader at a time.
    await closed
  }
  while (left.bytes > 0) {
    const piece = await source.some(left.bytes) ?? await source.cutOff()
    left.bytes -= piece.length
  }
}

/** `open` starts the request when the first entry is asked for, and `signal` cancels it; `translate` ends the link when the guest broke the protocol. */
export async function * guestEntries (open: () => Channel<void>, translate: Translate, signal: AbortSignal | undefined): AsyncGenerator<GuestEntry> {
  signal?.throwIfAborted()
  const channel = open()
  const output = channel.output(1)
  const stop = (): void => { output.destroy(reasonOf(signal)) }
  signal?.addEventListener('abort', stop, { once: true })
  let whole = false
  try {
    const source = new ByteSource(channel, signal)
    yield * entriesOf(source, translate)
    await source.result
    whole = true
  } catch (error) {
    throw translate(error)
  } finally {
    signal?.removeEventListener('abort', stop)
    if (!whole) {
      channel.control({ op: 'cancel' })
      output.destroy()
    }
  }
}
