// What all VMs share: the services that requests use.
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
  /** whether the program is stopping: each connection then ends with its current request */
  readonly draining: () => boolean
}
