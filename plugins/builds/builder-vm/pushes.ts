// The built-in registry's own report of a push: the VM is not trusted to report the digest.
import type { EventBus } from '../../../core/contracts/services.ts'
import type {} from '../../registry/contract.ts'

export interface PushWatch {
  /** whether a manifest with this digest was pushed under the name */
  has (digest: string): boolean
  close (): void
}

export function watchPushes (events: EventBus, repository: string, tag: string): PushWatch {
  const seen = new Set<string>()
  const close = events.on('registry.pushed', (event) => {
    if (event.repository === repository && event.reference === tag) seen.add(event.digest)
  })
  return { has: (digest) => seen.has(digest), close }
}
