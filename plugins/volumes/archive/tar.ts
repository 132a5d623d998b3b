// Reads a tar archive entry by entry, in memory that does not grow with the archive. What an entry means for a file system is decided elsewhere.
//
// This reader is our own: what stands between a stranger's archive and the host's file system must bound every length that the archive names, and refuse what two readers
// could understand differently.
import { ArchiveInvalid } from '../errors.ts'
import type { Blocks } from './blocks.ts'
import { paxNumber, readPax, SPARSE, type PaxRecords } from './pax.ts'
import { BLOCK, readHeader, type TarHeader } from './tar-header.ts'

export interface TarEntry {
  /** as the archive has it: any characters but NUL */
  readonly path: string
  readonly type: 'file' | 'dir' | 'symlink' | 'link'
  /** of a link of either kind */
  readonly target: string
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  /** seconds */
  readonly mtime: number
}

/** the most bytes of a pax header or a long name */
const MAX_RECORDS_BYTES = 256 * 1024
/** the most headers in a row that are about an entry that follows */
const MAX_PREFACES = 16
const MAX_ID = 0xffff_fffe

const TYPES: Readonly<Record<string, TarEntry['type']>> = { 0: 'file', '\0': 'file', 7: 'file', 1: 'link', 2: 'symlink', 5: 'dir' }
const REFUSED: Readonly<Record<string, string>> = { 3: 'a character device', 4: 'a block device', 6: 'a named pipe', S: 'a sparse file of GNU\'s own format', M: 'a part of a file', V: 'a volume label', D: 'a folder list' }

/** What the headers before an entry say about it. */
interface Preface {
  readonly records: PaxRecords
  readonly path?: Buffer
  readonly linkPath?: Buffer
}

/** Calls `take` for each entry; it must read `content` to its end. Returns when the archive has ended as one should. */
export async function readTar (blocks: Blocks, take: (entry: TarEntry, content: AsyncIterable<Buffer>) => Promise<void>): Promise<void> {
  const globals = new Map<string, Buffer>()
  for (;;) {
    const found = await nextEntry(blocks, globals)
    if (found === undefined) break
    const content = contentOf(blocks, found.sizeBytes)
    await take(found, content)
    await skip(blocks, (BLOCK - found.sizeBytes % BLOCK) % BLOCK)
  }
  // Reads to the end of the stream: what comes after the archive must be readable too, so that damage is noticed.
  while (await blocks.next(BLOCK * 128) !== undefined);
}

async function nextEntry (blocks: Blocks, globals: Map<string, Buffer>): Promise<TarEntry | undefined> {
  let preface: Preface = { records: new Map() }
  for (let count = 0; count <= MAX_PREFACES; count++) {
    const header = await nextHeader(blocks)
    if (header === undefined) {
      if (count > 0) throw ArchiveInvalid('it ends in the middle of an entry')
      return undefined
    }
    if (header.flag === 'g') for (const [key, value] of readPax(await recordsOf(blocks, header))) globals.set(key, value)
    else if (header.flag === 'x') preface = { ...preface, records: readPax(await recordsOf(blocks, header)) }
    else if (header.flag === 'L') preface = { ...preface, path: unterminated(await recordsOf(blocks, header)) }
    else if (header.flag === 'K') preface = { ...preface, linkPath: unterminated(await recordsOf(blocks, header)) }
    else return entryOf(header, preface, new Map([...globals, ...preface.records]))
  }
  throw ArchiveInvalid('it has too many headers that no entry follows')
}

async function nextHeader (blocks: Blocks): Promise<TarHeader | undefined> {
  const block = await blocks.take(BLOCK)
  if (block.length < BLOCK) throw ArchiveInvalid(block.length === 0 ? 'it has no end, so it was cut off' : 'it was cut off')
  return readHeader(block)
}

function entryOf (header: TarHeader, preface: Preface, records: PaxRecords): TarEntry {
  const path = textOf(valueOf(records, 'path') ?? preface.path ?? header.path, 'a name')
  const named = TYPES[header.flag]
  if (named === undefined) throw ArchiveInvalid(`${printable(path)} is ${REFUSED[header.flag] ?? `of the unknown type "${printable(header.flag)}"`}, which a volume cannot have`)
  // Versions of tar from before there was a type for folders.
  const type = named === 'file' && path.endsWith('/') ? 'dir' : named
  if (records.has(SPARSE)) throw ArchiveInvalid(`${printable(path)} is a sparse file of GNU's own format; archive it without --sparse`)
  const sizeBytes = paxNumber(records, 'size') ?? header.sizeBytes
  const uid = paxNumber(records, 'uid') ?? header.uid
  const gid = paxNumber(records, 'gid') ?? header.gid
  if (sizeBytes < 0) throw ArchiveInvalid(`${printable(path)} has an impossible size`)
  if (uid < 0 || uid > MAX_ID || gid < 0 || gid > MAX_ID) throw ArchiveInvalid(`${printable(path)} has an impossible owner`)
  if (type !== 'file' && sizeBytes > 0) throw ArchiveInvalid(`${printable(path)} is no file and has content`)
  return {
    path,
    type,
    target: textOf(valueOf(records, 'linkpath') ?? preface.linkPath ?? header.linkPath, 'the target of a link'),
    mode: header.mode,
    uid,
    gid,
    sizeBytes,
    mtime: Math.max(0, paxNumber(records, 'mtime') ?? header.mtime)
  }
}

function valueOf (records: PaxRecords, key: string): Buffer | undefined {
  const value = records.get(key)
  return value === undefined || value.length === 0 ? undefined : value
}

async function recordsOf (blocks: Blocks, { sizeBytes }: TarHeader): Promise<Buffer> {
  if (sizeBytes > MAX_RECORDS_BYTES) throw ArchiveInvalid(`a header has ${sizeBytes} bytes of records; at most ${MAX_RECORDS_BYTES} are read`)
  const bytes = await blocks.take(sizeBytes)
  if (bytes.length < sizeBytes) throw ArchiveInvalid('it was cut off')
  await skip(blocks, (BLOCK - sizeBytes % BLOCK) % BLOCK)
  return bytes
}

async function * contentOf (blocks: Blocks, sizeBytes: number): AsyncGenerator<Buffer> {
  let missing = sizeBytes
  while (missing > 0) {
    const piece = await blocks.next(missing)
    if (piece === undefined) throw ArchiveInvalid('it was cut off in the middle of a file')
    missing -= piece.length
    yield piece
  }
}

async function skip (blocks: Blocks, length: number): Promise<void> {
  if ((await blocks.take(length)).length < length) throw ArchiveInvalid('it was cut off')
}

function unterminated (bytes: Buffer): Buffer {
  const end = bytes.indexOf(0)
  return end < 0 ? bytes : bytes.subarray(0, end)
}

/** @throws for a name that is not UTF-8, which the host could not keep as it is */
function textOf (bytes: Buffer, what: string): string {
  const text = bytes.toString('utf8')
  if (text.includes('\0') || !Buffer.from(text, 'utf8').equals(bytes)) throw ArchiveInvalid(`${what} is not UTF-8 (${printable(text)})`)
  return text
}

/** A text for a message: cut, and without control characters. */
export function printable (text: string): string {
  const clean = text.replace(/\p{Cc}/gu, '?')
  return clean.length > 100 ? `${clean.slice(0, 100)}…` : clean
}
