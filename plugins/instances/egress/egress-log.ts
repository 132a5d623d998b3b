// What the API shows of mediated egress: the log of an instance, and the trial of a policy.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { AuditEntry } from '../../../proxy/contract/control.ts'
import type { BaseContext } from '../context.ts'
import { requirePolicy } from '../parts/policy.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { EgressLog, EgressTrial, EgressVerdict } from '../api/schemas.ts'

const DEFAULT_LIMIT = 100

export interface EgressLogRequest { readonly after?: number, readonly limit?: number }

/** Empty for an instance whose egress is direct. @throws egress_unavailable */
export async function egressLogOf (context: BaseContext, { id, record }: LiveInstance, { after, limit = DEFAULT_LIMIT }: EgressLogRequest): Promise<EgressLog> {
  const found = requirePolicy(context, record, 'egress')
  if (found === undefined) return { mode: 'none', credentials: [], entries: [], next: after ?? 0 }
  const { mode, credentials } = found.policy
  const { entries, next } = await found.egress.audit(id, { limit, ...(after === undefined ? {} : { after }) })
  return { mode, credentials: Object.keys(credentials), entries: entries.map(entryOf), next }
}

/** @throws plugin_disabled, invalid_request naming the field, or egress_unavailable */
export async function tryEgress ({ egress }: BaseContext, { url, mode = 'all', credentials = {} }: EgressTrial): Promise<EgressVerdict> {
  if (egress === undefined) throw PluginDisabled('egress', 'credentials')
  return await egress.tryPolicy({ url, mode, credentials })
}

function entryOf ({ vm, bytesIn, bytesOut, durationMs, injected, ...entry }: AuditEntry): EgressLog['entries'][number] {
  return { ...entry, injected: [...injected], bytes_in: bytesIn, bytes_out: bytesOut, duration_ms: durationMs }
}
