// Converts between a tar archive on standard input or output and entries.
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract, pack } from 'tar-stream'
import { writeAll } from '../output/write.ts'
import { Failure } from '../failure.ts'
import type { Entry } from './entry.ts'
import { shortest } from './shortest.ts'

/** of the types of an archive's entries */
const KINDS: Readonly<Record<string, Entry['kind']>> = { file: 'file', 'contiguous-file': 'file', directory: 'folder', symlink: 'link', link: 'hard link' }

/** The entries of an archive. */
export async function * archiveEntries (input: Readable): AsyncGenerator<Entry> {
  const archive = extract()
  const reading = pipeline(input, archive)
  reading.catch(() => undefined)
  for await (const entry of partsOf(archive)) {
    const { name, type, mode = 0o644, size = 0, mtime, linkname } = entry.header
    const path = shortest(name)
    const kind = KINDS[type ?? ''] ?? 'special file'
    if (path !== '') yield { path, kind, mode: mode & 0o7777, size, mtime: Math.floor((mtime?.getTime() ?? 0) / 1000), ...linkname == null ? {} : { target: linkname }, ...kind === 'file' ? { content: Readable.from(partsOf(entry), { objectMode: false }) } : {} }
    entry.resume()
  }
  await reading
}

async function * partsOf<T> (archive: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield * archive
  } catch (error) {
    throw new Failure(`the archive cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

/** Entries as an archive, below the name `top`. */
export async function writeArchive (output: Writable, top: string, entries: AsyncIterable<Entry>): Promise<void> {
  const archive = pack()
  const writing = writeOut(archive, output)
  writing.catch(() => undefined)
  for await (const { path, kind, mode, size, mtime, target, content } of entries) {
    const header = { name: path === '' ? top : `${top}/${path}`, mode, mtime: new Date(mtime * 1000) }
    if (kind === 'folder') archive.entry({ ...header, type: 'directory' })
    else if (kind === 'link') archive.entry({ ...header, type: 'symlink', linkname: target ?? '' })
    else if (content !== undefined) await pipeline(content, archive.entry({ ...header, type: 'file', size }))
    else throw new Failure(`${header.name} is a ${kind}, and cannot be copied`)
  }
  archive.finalize()
  await writing
}

// Not with pipeline(), which takes a standard output that it leaves open for one that failed.
async function writeOut (archive: AsyncIterable<unknown>, output: Writable): Promise<void> {
  for await (const chunk of archive) if (Buffer.isBuffer(chunk)) await writeAll(output, chunk)
}
