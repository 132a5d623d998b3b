// One line of the log of requests, before it has its number.
import type { AuditEntry } from '../contract.ts'
import type { ReasonCode } from '../gate/reasons.ts'

/** An entry before it has its place in the log; `path` may still have its query. */
export type AuditRecord = Omit<AuditEntry, 'seq' | 'time' | 'reason'> & { readonly reason?: ReasonCode }

const MAX_TEXT = 2_048

/** JSON that ends with a line feed. The VM comes first, and is what a reader of the line needs to know whose it is. */
export function auditLine (record: AuditRecord): string {
  const query = record.path?.indexOf('?') ?? -1
  const entry: Omit<AuditEntry, 'seq'> = {
    vm: record.vm,
    time: new Date().toISOString(),
    revision: record.revision,
    protocol: record.protocol,
    host: cut(record.host),
    port: record.port,
    method: record.method,
    path: record.path === undefined ? undefined : cut(query === -1 ? record.path : record.path.slice(0, query)),
    status: record.status,
    injected: record.injected,
    reason: record.reason,
    bytesIn: record.bytesIn,
    bytesOut: record.bytesOut,
    durationMs: Math.round(record.durationMs * 100) / 100
  }
  return `${JSON.stringify(entry)}\n`
}

function cut (text: string): string {
  return text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text
}
