// Makes a build's order from the fields of a form, each valid by itself: applies defaults and this server's limits, and refuses contradictions.
import { InvalidRequest, PluginDisabled } from '../../../core/errors/common.ts'
import { Forbidden, RepositoryForbidden } from '../../../core/http/errors.ts'
import { LOCAL_DOMAIN, parseReference } from '../../../core/library/oci/reference.ts'
import { isSharedCache, SHARED_CACHES_SCOPE } from '../../../core/library/oci/shared-caches.ts'
import type { BuildOrder } from '../record.ts'
import type { CreateBuild } from '../schemas.ts'
import type { BuildSettings } from '../settings.ts'
import { scopeCache, sharedCache } from '../caches.ts'

/** What the caller may do, and what this server can do. */
export interface Rights {
  /** the key that asks, by its durable id */
  readonly keyId?: string
  /** whether the key has `build:admin` */
  readonly mayAdmin: boolean
  /** whether the key has `image:read` */
  readonly mayReadImages: boolean
  /** whether the key may write to a repository (`localhost/…`) */
  readonly mayWrite: (repository: string) => boolean
  /** whether VMs can have a network */
  readonly hasNetwork: boolean
  /** whether there is an egress proxy */
  readonly hasEgress: boolean
}

const RESERVED = ['cache', 'builds', 'berth']

/** @throws invalid_request naming the field, forbidden */
export function orderOf (fields: CreateBuild, settings: BuildSettings, rights: Rights): BuildOrder {
  if (fields.is_admin_build === true && !rights.mayAdmin) throw Forbidden(SHARED_CACHES_SCOPE)
  if (fields.dockerfile !== undefined && fields.dockerfile_path !== undefined) throw InvalidRequest('dockerfile_path: cannot be given together with dockerfile')
  if (fields.is_admin_build === true && fields.global_cache_key === undefined) throw InvalidRequest('is_admin_build: needs global_cache_key, the cache that the build is to fill')
  if (fields.is_admin_build === true && fields.global_cache_key !== undefined) checkMayWrite(sharedCache(fields.global_cache_key), rights)
  return {
    keyId: rights.keyId,
    dockerfile: fields.dockerfile,
    dockerfilePath: fields.dockerfile_path === undefined ? undefined : pathInSource(fields.dockerfile_path),
    target: fields.target,
    cacheScope: scopeOf(fields.cache_scope, rights),
    globalCacheKey: fields.global_cache_key,
    baseImageDigest: fields.base_image_digest,
    imageName: fields.image_name === undefined ? undefined : imageName(fields.image_name, rights),
    builderId: fields.builder_id,
    buildArgs: fields.build_args ?? {},
    noCache: fields.no_cache ?? false,
    secretIds: secretIds(fields),
    writesGlobalCache: fields.is_admin_build ?? false,
    readsRegistry: rights.mayReadImages,
    vcpus: within('cpus', fields.cpus, settings.vcpus),
    memoryMb: within('memory_mb', fields.memory_mb, settings.memoryMb),
    timeoutSeconds: within('timeout_seconds', fields.timeout_seconds, settings.timeoutSeconds),
    network: networkOf(fields, rights)
  }
}

function within (field: string, value: number | undefined, { default: usual, max }: { readonly default: number, readonly max: number }): number {
  if (value !== undefined && value > max) throw InvalidRequest(`${field}: must be at most ${max}`)
  return value ?? usual
}

function networkOf ({ network_mode: mode, egress_mode: egress }: CreateBuild, { hasNetwork, hasEgress }: Rights): BuildOrder['network'] {
  if (egress !== undefined && mode === 'isolated') throw InvalidRequest('egress_mode: cannot be given with network_mode isolated')
  if (egress !== undefined && !hasEgress) throw PluginDisabled('egress', 'egress_mode')
  if (mode === 'egress' && !hasNetwork) throw PluginDisabled('networking', 'network_mode')
  return { mode: mode ?? (hasNetwork ? 'egress' : 'isolated'), ...(egress === undefined ? {} : { egress }) }
}

function secretIds ({ secrets = [] }: CreateBuild): string[] {
  const ids = secrets.map(({ id }) => id)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) throw InvalidRequest(`secrets: ${twice} is given twice`)
  return ids
}

/** The shared caches are among those of scopes. */
function scopeOf (scope: string | undefined, rights: Rights): string | undefined {
  if (scope === undefined) return undefined
  if (isSharedCache(scopeCache(scope))) throw InvalidRequest('cache_scope: must not begin with global, where the shared caches are')
  checkMayWrite(scopeCache(scope), rights)
  return scope
}

/** @param repository in the built-in registry */
function checkMayWrite (repository: string, { mayWrite }: Rights): void {
  const name = `${LOCAL_DOMAIN}/${repository}`
  if (!mayWrite(name)) throw RepositoryForbidden(name)
}

function pathInSource (path: string): string {
  const parts = path.replace(/^(\.\/)+/, '').split('/')
  if (parts.some((part) => part === '' || part === '.' || part === '..') || /\p{Cc}/u.test(path)) {
    throw InvalidRequest('dockerfile_path: must be the path of a file in the source, without .. and not absolute')
  }
  return parts.join('/')
}

/** `team/web` or `team/web:1.2` in the built-in registry. */
function imageName (written: string, rights: Rights): string {
  const { path, tag, digest } = parseReference(`${LOCAL_DOMAIN}/${written.trim()}`, undefined, 'image_name')
  if (digest !== undefined) throw InvalidRequest('image_name: cannot have a digest, which is known only when it is built')
  const reserved = RESERVED.find((name) => path === name || path.startsWith(`${name}/`))
  if (reserved !== undefined) throw InvalidRequest(`image_name: must not lie in ${reserved}/, which belongs to this server`)
  checkMayWrite(path, rights)
  return tag === undefined || !written.includes(':') ? path : `${path}:${tag}`
}
