// The repositories of the built-in registry where layers are kept for later builds.
import { SHARED_CACHES } from '../../core/library/oci/shared-caches.ts'

/** The cache of a scope. Every key may name each scope that its repositories allow. */
export function scopeCache (scope: string): string {
  return `cache/${scope}`
}

/** The cache of a key that all builds may read. */
export function sharedCache (key: string): string {
  return `${SHARED_CACHES}/${key}`
}
