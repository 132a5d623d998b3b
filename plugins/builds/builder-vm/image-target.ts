// The target of a build's image, and the repositories that its VM may use.
import type { RegistryGrant } from '../../registry/contract.ts'
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
  /** the cache that gets the layers of `write` at the end, too */
  readonly share: string | undefined
}

/** A scope's cache is private; that of a key is shared by all, and only builds with the right to do so write it. */
export function cachesOf ({ cacheScope, globalCacheKey, writesGlobalCache }: Pick<BuildJob, 'cacheScope' | 'globalCacheKey' | 'writesGlobalCache'>): Caches {
  const scope = cacheScope === undefined ? undefined : `cache/${cacheScope}`
  const everybody = globalCacheKey === undefined ? undefined : `cache/global/${globalCacheKey}`
  const shared = writesGlobalCache ? everybody : undefined
  return { read: [scope, everybody].filter((each) => each !== undefined), write: scope ?? shared, share: scope === undefined ? undefined : shared }
}

export function grantOf (job: Pick<BuildJob, 'readsRegistry'>, target: ImageTarget, caches: Caches): RegistryGrant {
  const write = [target.repository, ...caches.write === undefined ? [] : [caches.write]]
  return { read: job.readsRegistry ? 'all' : [...caches.read], write, quiet: caches.write === undefined ? [] : [caches.write] }
}
