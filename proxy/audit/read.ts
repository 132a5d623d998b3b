// Reads entries of one VM back from the files of its part of the log.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { AuditEntry } from '../contract/control.ts'
import { hasCode } from '../log/error-code.ts'
import type { Segment } from './segments.ts'

export interface AuditQuery {
  readonly vm: string
  /** only entries with larger numbers */
  readonly after: number
  readonly limit: number
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  /** the `after` of the next query */
  readonly next: number
}

/** The oldest entries that match, in order. */
export async function readEntries (segments: readonly Segment[], query: AuditQuery): Promise<AuditPage> {
  const entries: AuditEntry[] = []
  const now = [...segments]
  for (const [index, { path }] of now.entries()) {
    if ((now[index + 1]?.first ?? Number.POSITIVE_INFINITY) <= query.after + 1) continue
    await collect(path, query, entries)
    if (entries.length >= query.limit) break
  }
  return { entries, next: entries.at(-1)?.seq ?? query.after }
}

async function collect (path: string, query: AuditQuery, entries: AuditEntry[]): Promise<void> {
  const stream = createReadStream(path, { highWaterMark: 256 * 1024 })
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      const entry = parseEntry(line)
      if (entry === undefined || entry.vm !== query.vm || entry.seq <= query.after) continue
      entries.push(entry)
      if (entries.length >= query.limit) break
    }
  } catch (error) {
    // A file that was the oldest a moment ago may have been removed since.
    if (!hasCode(error, 'ENOENT')) throw error
  } finally {
    stream.destroy()
  }
}

/** `undefined` for a line that a crash cut off. */
function parseEntry (line: string): AuditEntry | undefined {
  if (!line.startsWith('{"seq":') || !line.endsWith('}')) return undefined
  try {
    const entry: AuditEntry = JSON.parse(line)
    return entry
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
