// Reads the form of a new build: writes the source to the disk, and keeps all other fields as text.
import { createHash } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import type { DiskWatch } from '../../../core/fs/disk-space.ts'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { SourceTooLarge } from '../errors.ts'

export interface FormPart {
  readonly name: string | undefined
  readonly content: AsyncIterable<Buffer>
}

export interface Form {
  /** texts by field name */
  readonly fields: ReadonlyMap<string, string>
  /** hexadecimal SHA-256 of the source; absent: there was none */
  readonly sourceHash?: string
}

export interface SourceTarget {
  readonly path: string
  readonly maxBytes: number
  /** the limit as people write it */
  readonly max: string
  /** watches the disk of the path */
  readonly watch?: DiskWatch
}

const SOURCE = 'source'
/** for one text */
export const MAX_FIELD_BYTES = 2 ** 20
/** for all texts together, which are held in memory */
const MAX_TEXT_BYTES = 4 * 2 ** 20
const MAX_SHOWN = 100

/** @throws invalid_request naming the field, source_too_large, and `DiskShort`. The caller must remove what is left at the path. */
export async function readForm (parts: AsyncIterable<FormPart>, target: SourceTarget): Promise<Form> {
  const fields = new Map<string, string>()
  let sourceHash: string | undefined
  let roomBytes = MAX_TEXT_BYTES
  for await (const { name, content } of parts) {
    if (name === undefined || name === '') throw InvalidRequest('the request body has a field without a name')
    if (fields.has(name) || (name === SOURCE && sourceHash !== undefined)) throw InvalidRequest(`${shown(name)} is given twice`)
    if (name === SOURCE) {
      sourceHash = await save(content, target)
    } else {
      const bytes = await gather(name, content)
      roomBytes -= bytes.length
      if (roomBytes < 0) throw InvalidRequest(`${shown(name)}: the texts of a form must be at most ${MAX_TEXT_BYTES / 2 ** 20} MB together`)
      fields.set(name, textOf(name, bytes))
    }
  }
  return { fields, ...sourceHash === undefined ? {} : { sourceHash } }
}

async function save (content: AsyncIterable<Buffer>, { path, maxBytes, max, watch }: SourceTarget): Promise<string> {
  const hash = createHash('sha256')
  const file = await open(path, 'wx', 0o600)
  try {
    let bytes = 0
    for await (const piece of content) {
      bytes += piece.length
      if (bytes > maxBytes) throw SourceTooLarge(max)
      watch?.count(piece.length)
      watch?.signal.throwIfAborted()
      hash.update(piece)
      await writeAll(file, piece)
    }
    if (bytes === 0) throw InvalidRequest('source is empty; it must be a tar archive, compressed with gzip')
    await file.sync()
  } finally {
    await file.close()
  }
  return hash.digest('hex')
}

async function writeAll (file: FileHandle, piece: Buffer): Promise<void> {
  for (let done = 0; done < piece.length;) done += (await file.write(piece, done)).bytesWritten
}

async function gather (name: string, content: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of content) {
    bytes += piece.length
    if (bytes > MAX_FIELD_BYTES) throw InvalidRequest(`${shown(name)} must be at most ${MAX_FIELD_BYTES / 2 ** 20} MB`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

function textOf (name: string, bytes: Buffer): string {
  try {
    // fetch clients and browsers send every line end of a text as CR LF, as the standard for forms requires.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replaceAll('\r\n', '\n')
  } catch (error) {
    throw InvalidRequest.from(error, `${shown(name)} must be UTF-8 text`)
  }
}

function shown (name: string): string {
  return name.replace(/\p{Cc}/gu, '?').slice(0, MAX_SHOWN)
}
