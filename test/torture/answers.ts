// Which failures a server may answer with, and why: what the READMEs say of each fault, and nothing else.
import type { FaultKind } from './faults/kind.ts'

/** Codes of 5xx answers, and the faults of a round that may bring them; an empty list: always. */
const SAID: Readonly<Record<string, readonly FaultKind[]>> = {
  database_unavailable: ['database'],
  // the proxy is away for a moment, or could not be started
  egress_unavailable: ['proxy', 'worker', 'server', 'tool', 'slow tool', 'bytes', 'inodes', 'database'],
  // the guest went away under the call
  agent_unavailable: [],
  not_supported: [],
  unavailable: ['server', 'database'],
  network_unusable: ['tool'],
  // A host tool that fails is a fault of the host, of which callers are told the request id.
  internal_error: ['tool']
}

/** Why this answer must not be; `undefined` when it may. */
export function unsaid (status: number, code: string, faults: ReadonlySet<FaultKind>, retryAfter: string | null): string | undefined {
  if (status < 500) return undefined
  const causes = SAID[code]
  if (causes === undefined) return `${status} ${code} is said nowhere`
  if (causes.length > 0 && !causes.some((cause) => faults.has(cause))) return `${status} ${code} without a cause`
  if (code === 'database_unavailable' && retryAfter === null) return `${status} ${code} without Retry-After`
  return undefined
}
