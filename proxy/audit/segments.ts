// The files of one VM's part of the log: each is named by the number of its first entry, and holds JSON lines.
import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { hasCode } from '../log/error-code.ts'

export interface Segment {
  readonly path: string
  /** number of its first entry */
  readonly first: number
  bytes: number
}

const NAME = /^(\d{16})\.jsonl$/
// More than the longest line: texts from guests are cut before they are written.
const TAIL_BYTES = 64 * 1024

function segmentPath (folder: string, first: number): string {
  return join(folder, `${String(first).padStart(16, '0')}.jsonl`)
}

/** All segments of a folder, oldest first. */
export function readSegments (folder: string): Segment[] {
  const names = readdirSync(folder).filter(name => NAME.test(name)).sort()
  return names.map(name => ({ path: join(folder, name), first: Number(name.slice(0, 16)), bytes: statSync(join(folder, name)).size }))
}

/** Makes the file for entries from `first` on. */
export function createSegment (folder: string, first: number): Segment {
  mkdirSync(folder, { recursive: true, mode: 0o750 })
  const path = segmentPath(folder, first)
  closeSync(openSync(path, 'a', 0o640))
  return { path, first, bytes: statSync(path).size }
}

export function removeSegment ({ path }: Segment): void {
  rmSync(path, { force: true })
}

/** The number of a file's last whole entry; the one before its first when it has none. Half a line, which a crash leaves, is made a line of its own, so that it does not become the beginning of the next one. */
export function endOf (segment: Segment): number {
  const tail = readTail(segment.path)
  if (tail !== '' && !tail.endsWith('\n')) segment.bytes += appendLine(segment.path)
  for (const line of tail.split('\n').reverse()) {
    if (!line.startsWith('{"seq":') || !line.endsWith('}')) continue
    const seq = Number(line.slice(7, line.indexOf(',')))
    if (Number.isSafeInteger(seq)) return seq
  }
  return segment.first - 1
}

function appendLine (path: string): number {
  const descriptor = openSync(path, 'a')
  try {
    return writeSync(descriptor, '\n')
  } finally {
    closeSync(descriptor)
  }
}

function readTail (path: string): string {
  try {
    const descriptor = openSync(path, 'r')
    try {
      const { size } = fstatSync(descriptor)
      const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES))
      readSync(descriptor, bytes, 0, bytes.length, size - bytes.length)
      return bytes.toString()
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  }
}
