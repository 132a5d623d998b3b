// The target of a build's image, and the repositories that its VM may use.
import type { RegistryGrant } from '../../registry/contract.ts'
import { scopeCache, sharedCache } from '../caches.ts'
import type { BuildJob } from '../run.ts'

export interface ImageTarget {
  readonly repository: string
  readonly tag: string
}

export function targetOf ({ id, imageName }: Pick<BuildJob, 'id' | 'imageName'>): ImageTarget {
  const [, repository = `builds/${id}`, tag = 'latest'] = /^(.+?)(?::([^:/]+))?$/.exec(imageName ?? '') ?? []
  return { repository, tag }
}

export interface Caches {
  /** caches to read, the nearest first */
  readonly read: readonly string[]
  /** the cache that new layers are written to */
  readonly write: string | undefined
}

/**
 * The cache of a global key is shared by all, and only builds with the right to do so write it. Such a build uses no scope's cache: keys without that right write there, and what it took from there it would hand on
 * to everybody.
 */
export function cachesOf ({ cacheScope, globalCacheKey, writesGlobalCache }: Pick<BuildJob, 'cacheScope' | 'globalCacheKey' | 'writesGlobalCache'>): Caches {
  const shared = globalCacheKey === undefined ? undefined : sharedCache(globalCacheKey)
  const scope = writesGlobalCache || cacheScope === undefined ? undefined : scopeCache(cacheScope)
  return { read: [scope, shared].filter((each) => each !== undefined), write: writesGlobalCache ? shared : scope }
}

export function grantOf (job: Pick<BuildJob, 'readsRegistry'>, target: ImageTarget, caches: Caches): RegistryGrant {
  const write = [target.repository, ...caches.write === undefined ? [] : [caches.write]]
  return { read: job.readsRegistry ? 'all' : [...caches.read], write, quiet: caches.write === undefined ? [] : [caches.write] }
}
