// Reads one header block of a tar archive, in the forms that are in use (ustar, pax, GNU). Refuses whatever is not certain.
import { ArchiveInvalid } from '../errors.ts'

export const BLOCK = 512

export interface TarHeader {
  /** the bytes of the name; pax and GNU records may replace them */
  readonly path: Buffer
  readonly linkPath: Buffer
  readonly flag: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  /** seconds */
  readonly mtime: number
}

const CHECKSUM = { at: 148, length: 8 } as const
const SPACE = 0x20

/** Undefined for a block of zeros, of which two end an archive. */
export function readHeader (block: Buffer): TarHeader | undefined {
  if (block.every((byte) => byte === 0)) return undefined
  checkSum(block)
  const isUstar = block.toString('latin1', 257, 263) === 'ustar\0'
  const prefix = isUstar ? textAt(block, 345, 155) : Buffer.alloc(0)
  const name = textAt(block, 0, 100)
  return {
    path: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    linkPath: textAt(block, 157, 100),
    flag: block.toString('latin1', 156, 157),
    mode: numberAt(block, { at: 100, length: 8, what: 'mode' }) & 0o7777,
    uid: numberAt(block, { at: 108, length: 8, what: 'owner' }),
    gid: numberAt(block, { at: 116, length: 8, what: 'group' }),
    sizeBytes: numberAt(block, { at: 124, length: 12, what: 'size' }),
    mtime: numberAt(block, { at: 136, length: 12, what: 'time', signed: true })
  }
}

function checkSum (block: Buffer): void {
  const { at, length } = CHECKSUM
  let unsigned = 0
  let signed = 0
  for (let index = 0; index < BLOCK; index++) {
    const byte = index >= at && index < at + length ? SPACE : block.readUInt8(index)
    unsigned += byte
    // Old versions of tar added up signed characters.
    signed += byte > 127 ? byte - 256 : byte
  }
  const stored = numberAt(block, { at, length, what: 'checksum' })
  if (stored !== unsigned && stored !== signed) throw ArchiveInvalid('a header has a wrong checksum, so this is no tar archive, or it is damaged')
}

function textAt (block: Buffer, at: number, length: number): Buffer {
  const field = block.subarray(at, at + length)
  const end = field.indexOf(0)
  return Buffer.from(end < 0 ? field : field.subarray(0, end))
}

/** A number in octal digits, or, with its highest bit set, in binary. */
function numberAt (block: Buffer, { at, length, what, signed = false }: { readonly at: number, readonly length: number, readonly what: string, readonly signed?: boolean }): number {
  const field = block.subarray(at, at + length)
  const first = field.readUInt8(0)
  if ((first & 0x80) !== 0) return binary(field, { what, signed })
  const [text, ...more] = field.toString('latin1').split(/[\0 ]+/).filter((word) => word !== '')
  if (text === undefined) return 0
  if (more.length > 0 || !/^[0-7]+$/.test(text)) throw ArchiveInvalid(`a header has a ${what} that is no number`)
  return Number.parseInt(text, 8)
}

function binary (field: Buffer, { what, signed }: { readonly what: string, readonly signed: boolean }): number {
  let value = BigInt(field.readUInt8(0) & 0x7f)
  const negative = (field.readUInt8(0) & 0x40) !== 0
  for (const byte of field.subarray(1)) value = value * 256n + BigInt(byte)
  if (negative && signed) return 0
  if (negative || value > BigInt(Number.MAX_SAFE_INTEGER)) throw ArchiveInvalid(`a header has an impossible ${what}`)
  return Number(value)
}
