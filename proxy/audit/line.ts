// One line of the log of requests, before it gets its number.
import type { AuditEntry } from '../contract/control.ts'
import type { ReasonCode } from '../contract/reasons.ts'

/** An entry before it gets its number in the log; `path` may still have its query. */
export type AuditRecord = Omit<AuditEntry, 'seq' | 'time' | 'reason'> & { readonly reason?: ReasonCode }

const MAX_TEXT = 2_048

/** The text that starts the steps of a trace in a line. No text of a guest can contain it: JSON writes a backslash before a quotation mark. */
const TRACE = ',"trace":'

const BEGINNING = '{"vm":"'
/** The characters that JSON writes unchanged: all of ASCII but controls, quotation mark and backslash. */
const PLAIN = /^[ !#-[\]-~]*$/

/**
 * JSON that ends with a line feed. The VM's id comes first, since a reader needs it to assign the line. The line is put together here rather than by `JSON.stringify`, which took a
 * twentieth of what a request costs.
 */
export function auditLine (record: AuditRecord): string {
  const { path, reason, status } = record
  const query = path?.indexOf('?') ?? -1
  return `{"vm":${quoted(record.vm)},"time":"${now()}","revision":${record.revision},"protocol":"${record.protocol}","host":${quoted(cut(record.host))},"port":${record.port}` +
    (record.method === undefined ? '' : `,"method":${quoted(record.method)}`) +
    (path === undefined ? '' : `,"path":${quoted(cut(query === -1 ? path : path.slice(0, query)))}`) +
    (status === undefined ? '' : `,"status":${status}`) +
    `,"injected":[${record.injected.map(quoted).join(',')}]` +
    (reason === undefined ? '' : `,"reason":"${reason}"`) +
    `,"bytesIn":${record.bytesIn},"bytesOut":${record.bytesOut},"durationMs":${Math.round(record.durationMs * 100) / 100}${record.trace === undefined ? '' : `${TRACE}${JSON.stringify(record.trace)}`}}\n`
}

/** The line without the steps of a trace, and whether it had any. */
export function withoutTrace (line: string): { readonly line: string, readonly isTraced: boolean } {
  const at = line.lastIndexOf(TRACE)
  return at === -1 ? { line, isTraced: false } : { line: `${line.slice(0, at)}}\n`, isTraced: true }
}

/** The VM that a line belongs to, read from its beginning. `undefined` for an incomplete line: a worker may have been killed while it wrote one. */
export function vmOfLine (line: string): string | undefined {
  const end = line.indexOf('","time":"', BEGINNING.length)
  if (end === -1 || !line.startsWith(BEGINNING) || !line.endsWith('}')) return undefined
  const vm = line.slice(BEGINNING.length, end)
  return PLAIN.test(vm) ? vm : unquoted(vm)
}

function quoted (text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

function unquoted (text: string): string | undefined {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

let lastMs = 0
let lastText = ''

/** The current time, shared by many requests: a new text for each request would cost more than the rest of the line. */
function now (): string {
  const ms = Date.now()
  if (ms !== lastMs) {
    lastMs = ms
    lastText = new Date(ms).toISOString()
  }
  return lastText
}

function cut (text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text
}
