// What all VMs share: the parts of the program that a request passes through.
import type { SecureContext } from 'node:tls'
import type { AuditLog } from '../audit/log.ts'
import type { Authority } from '../tls/authority.ts'
import type { Limits } from '../config/schema.ts'
import type { Log } from '../log/log.ts'
import type { Counters } from '../metrics/counters.ts'
import type { Resolve } from '../upstream/resolver.ts'
import type { Vet } from '../contract/vet.ts'
import type { ContextCache } from '../tls/context-cache.ts'

export interface Services {
  readonly limits: Limits
  readonly resolve: Resolve
  readonly vet: Vet
  /** how certificates of origins are checked: Node's roots and the configured ones */
  readonly originTrust: SecureContext
  readonly authority: Authority
  readonly contexts: ContextCache
  readonly audit: AuditLog
  readonly counters: Counters
  readonly log: Log
  /** whether the program is stopping: connections then end with the request that they are at */
  readonly draining: () => boolean
}
