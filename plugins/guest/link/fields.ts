// Payloads made of fields (tag, length, bytes): a writer for the host's messages and a strict reader for the guest's.
import { MAX_FIELDS, MAX_TEXT_BYTES } from './limits.ts'
import { ProtocolViolation } from './violation.ts'

export const Tag = {
  kind: 1, protocol: 2, phase: 3, argv: 4, env: 5, cwd: 6, user: 7, tty: 8, rows: 9, cols: 10, timeoutMs: 11,
  exitCode: 12, signal: 13, hostname: 14, realtimeNs: 15, entropy: 16, mount: 17, agent: 18, graceMs: 19,
  path: 20, mode: 21, uid: 22, gid: 23, mtime: 24, size: 25, type: 26, linkTarget: 27, follow: 28, basename: 29,
  error: 30, errno: 31, exists: 32, bytes: 33, uptimeMs: 34, kernel: 35, memoryTotal: 36, oom: 37, bootId: 38,
  device: 39, readonly: 40, overlayDevice: 41,
  network: 42, mac: 43, address: 44, gateway: 45, dns: 46, sync: 47, newMachine: 48, trust: 49, certificate: 50, subjectHash: 51, bundle: 52, kernelHeaders: 53, port: 54
} as const
export type Tag = typeof Tag[keyof typeof Tag]

export type FieldValue = string | number | bigint | boolean | Buffer | undefined

const FIELD_HEADER_BYTES = 5

/** Builds one payload. Values that are `undefined` are left out. */
export class FieldWriter {
  readonly #parts: Buffer[] = []

  add (tag: Tag, value: FieldValue): this {
    if (value === undefined) return this
    const bytes = encodeValue(value)
    const header = Buffer.alloc(FIELD_HEADER_BYTES)
    header[0] = tag
    header.writeUInt32LE(bytes.length, 1)
    this.#parts.push(header, bytes)
    return this
  }

  addAll (tag: Tag, values: readonly string[]): this {
    for (const value of values) this.add(tag, value)
    return this
  }

  finish (): Buffer { return Buffer.concat(this.#parts) }
}

function encodeValue (value: Exclude<FieldValue, undefined>): Buffer {
  if (Buffer.isBuffer(value)) return value
  if (typeof value === 'string') return Buffer.from(value, 'utf8')
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(BigInt.asIntN(64, BigInt(value)))
  return bytes
}

/** One payload from the guest. Each getter throws `ProtocolViolation` when the field is present and does not have the requested form. */
export class FieldReader {
  readonly #fields = new Map<number, Buffer>()

  constructor (payload: Buffer) {
    let at = 0
    let count = 0
    while (at < payload.length) {
      if (payload.length - at < FIELD_HEADER_BYTES) throw new ProtocolViolation('sent a field that is cut off')
      const tag = payload.readUInt8(at)
      const length = payload.readUInt32LE(at + 1)
      at += FIELD_HEADER_BYTES
      if (length > payload.length - at) throw new ProtocolViolation(`sent field ${tag} with ${length} bytes, more than its message has`)
      if (++count > MAX_FIELDS) throw new ProtocolViolation(`sent more than ${MAX_FIELDS} fields in one message`)
      if (this.#fields.has(tag)) throw new ProtocolViolation(`sent field ${tag} twice in one message`)
      this.#fields.set(tag, payload.subarray(at, at + length))
      at += length
    }
  }

  has (tag: Tag): boolean { return this.#fields.has(tag) }

  number (tag: Tag): number | undefined {
    const bytes = this.#fields.get(tag)
    if (bytes === undefined) return undefined
    if (bytes.length !== 8) throw new ProtocolViolation(`sent the number ${tag} in ${bytes.length} bytes`)
    const value = bytes.readBigUInt64LE()
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new ProtocolViolation(`sent the number ${tag} with an impossible value`)
    return Number(value)
  }

  /** A file's size. Any user of a guest can make a sparse file that is larger than what a number can count; it has the largest that one can. */
  size (tag: Tag): number | undefined {
    const bytes = this.#fields.get(tag)
    if (bytes === undefined) return undefined
    if (bytes.length !== 8) throw new ProtocolViolation(`sent the size ${tag} in ${bytes.length} bytes`)
    return Math.min(Number(bytes.readBigUInt64LE()), Number.MAX_SAFE_INTEGER)
  }

  flag (tag: Tag): boolean | undefined {
    const value = this.number(tag)
    if (value !== undefined && value > 1) throw new ProtocolViolation(`sent ${value} where field ${tag} is 0 or 1`)
    return value === undefined ? undefined : value === 1
  }

  /** A file's time. Times before 1970 exist on disks, and so do absurd ones, which become 0. */
  seconds (tag: Tag): number | undefined {
    const bytes = this.#fields.get(tag)
    if (bytes === undefined) return undefined
    if (bytes.length !== 8) throw new ProtocolViolation(`sent the time ${tag} in ${bytes.length} bytes`)
    const value = Number(bytes.readBigInt64LE())
    return Number.isSafeInteger(value) ? value : 0
  }

  /**
   * A text of the guest. File names are bytes on Linux, so bytes that are not UTF-8 become U+FFFD and do not end the link:
   * an image may well contain such a name.
   */
  text (tag: Tag, maxBytes = MAX_TEXT_BYTES): string | undefined {
    const bytes = this.#fields.get(tag)
    if (bytes === undefined) return undefined
    if (bytes.length > maxBytes) throw new ProtocolViolation(`sent the text ${tag} with ${bytes.length} bytes; ${maxBytes} are allowed`)
    if (bytes.includes(0)) throw new ProtocolViolation(`sent the text ${tag} with a NUL in it`)
    return bytes.toString('utf8')
  }

  /** A text for people, without control characters, which could rewrite a terminal or a log line. */
  prose (tag: Tag): string | undefined {
    // eslint-disable-next-line no-control-regex
    return this.text(tag)?.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim()
  }
}
