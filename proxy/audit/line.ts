// One line of the log of requests, before it gets its number.
import type { AuditEntry } from '../contract/control.ts'
import type { ReasonCode } from '../contract/reasons.ts'

/** An entry before it gets its number in the log; `path` may still have its query. */
export type AuditRecord = Omit<AuditEntry, 'seq' | 'time' | 'reason'> & { readonly reason?: ReasonCode }

const MAX_TEXT = 2_048

/** The text that starts the steps of a trace in a line. No text of a guest can contain it: JSON writes a backslash before a quotation mark. */
const TRACE = ',"trace":'
/** Steps come last. */
const TRACED_END = '}}\n'

const BEGINNING = '{"vm":"'
const END = '","time":"'
/** The characters that JSON writes unchanged: all of ASCII but controls, quotation mark and backslash. */
const PLAIN = /^[ !#-[\]-~]*$/

/**
 * JSON in ASCII that ends with a line feed, so that a character is a byte wherever a line goes. The VM's id comes first, since a reader needs it to assign the line. The line is put together here rather than by `JSON.stringify`, which took a
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
    `,"bytesIn":${record.bytesIn},"bytesOut":${record.bytesOut},"durationMs":${Math.round(record.durationMs * 100) / 100}${record.trace === undefined ? '' : `${TRACE}${asciiJson(record.trace)}`}}\n`
}

/** The line without the steps of a trace, and whether it had any. */
export function withoutTrace (line: string): { readonly line: string, readonly isTraced: boolean } {
  // A line without ends with a number: most lines are not searched.
  if (!line.endsWith(TRACED_END)) return { line, isTraced: false }
  const at = line.lastIndexOf(TRACE)
  return at === -1 ? { line, isTraced: false } : { line: `${line.slice(0, at)}}\n`, isTraced: true }
}

let lastBeginning = ''
let lastVm = ''

/** The VM that a line belongs to, read from its beginning. `undefined` for an incomplete line: a worker may have been killed while it wrote one. */
export function vmOfLine (line: string): string | undefined {
  if (!line.endsWith('}\n')) return undefined
  // The lines of one VM come one after the other.
  if (lastBeginning !== '' && line.startsWith(lastBeginning)) return lastVm
  const end = line.indexOf(END, BEGINNING.length)
  if (end === -1 || !line.startsWith(BEGINNING)) return undefined
  const text = line.slice(BEGINNING.length, end)
  const vm = PLAIN.test(text) ? text : unquoted(text)
  if (vm === undefined) return undefined
  lastVm = vm
  lastBeginning = line.slice(0, end + END.length)
  return vm
}

function quoted (text: string): string {
  return PLAIN.test(text) ? `"${text}"` : asciiJson(text)
}

function asciiJson (value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
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
