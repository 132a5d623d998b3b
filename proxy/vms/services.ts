// What all VMs share: the parts of the program that a request passes through.
import type { AuditLog } from '../audit/log.ts'
import type { Authority } from '../tls/authority.ts'
import type { Log } from '../log/log.ts'
import type { OriginServices } from '../upstream/services.ts'
import type { ContextCache } from '../tls/context-cache.ts'

export interface Services extends OriginServices {
  readonly authority: Authority
  readonly contexts: ContextCache
  readonly audit: AuditLog
  readonly log: Log
  /** whether the program is stopping: connections then end with the request that they are at */
  readonly draining: () => boolean
}
