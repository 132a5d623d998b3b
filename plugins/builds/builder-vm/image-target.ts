// Where a build's image goes, and which repositories its VM may use.
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
  /** to look into, the nearest first */
  readonly read: readonly string[]
  /** where new layers go */
  readonly write: string | undefined
  /** where what is in `write` goes in the end, too */
  readonly share: string | undefined
}

/** A scope's cache is its own; that of a key is everybody's, and only builds that may do so write it. */
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
