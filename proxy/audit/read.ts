// Reads entries of one VM back from the files of the audit log.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { AuditEntry } from '../contract.ts'
import { hasCode } from '../log/error-code.ts'
import { auditFiles } from './log.ts'

export interface AuditQuery {
  readonly vm: string
  /** entries with larger numbers */
  readonly after: number
  readonly limit: number
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  /** what to ask after next time */
  readonly next: number
}

/** The oldest entries that match, in order. */
export async function readAudit (file: string, query: AuditQuery): Promise<AuditPage> {
  const entries: AuditEntry[] = []
  for (const path of auditFiles(file)) {
    if (lastOf(path, file) <= query.after) continue
    await collect(path, query, entries)
    if (entries.length >= query.limit) break
  }
  return { entries, next: entries.at(-1)?.seq ?? query.after }
}

function lastOf (path: string, file: string): number {
  return path === file ? Number.POSITIVE_INFINITY : Number(path.slice(file.length + 1))
}

async function collect (path: string, query: AuditQuery, entries: AuditEntry[]): Promise<void> {
  const stream = createReadStream(path, { highWaterMark: 256 * 1024 })
  const wanted = `"vm":${JSON.stringify(query.vm)},`
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
      if (!line.includes(wanted)) continue
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
