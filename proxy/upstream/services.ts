// The shared services that connections to origins need.
import type { SecureContext } from 'node:tls'
import type { Limits } from '../config/schema.ts'
import type { Vet } from '../contract/vet.ts'
import type { Counters } from '../log/counters.ts'
import type { Resolve } from './resolver.ts'

export interface OriginServices {
  readonly limits: Limits
  readonly resolve: Resolve
  readonly vet: Vet
  /** how certificates of origins are checked: Node's roots and the configured ones */
  readonly originTrust: SecureContext
  readonly counters: Counters
}
