// The requests that the registry answers, read from the raw path: what does not fit this grammar never reaches the store.

export interface RegistryRequest {
  /** the scopes of which one is enough */
  readonly scopes: readonly string[]
  /** set when this stores a manifest */
  readonly push?: { readonly repository: string, readonly reference: string }
}

const READ = 'image:read'
const WRITE = 'image:write'
const DELETE = 'image:delete'

const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const NAME = `(${COMPONENT}(?:/${COMPONENT})*)`
const TAG = '[A-Za-z0-9_][A-Za-z0-9._-]{0,127}'
const DIGEST = '[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}'
const MAX_NAME_LENGTH = 255

const MANIFEST = new RegExp(`^/v2/${NAME}/manifests/(${TAG}|${DIGEST})$`)
const BLOB = new RegExp(`^/v2/${NAME}/blobs/(?:${DIGEST})$`)
const UPLOADS = new RegExp(`^/v2/${NAME}/blobs/uploads/?$`)
const UPLOAD = new RegExp(`^/v2/${NAME}/blobs/uploads/[A-Za-z0-9_=-]+$`)
const TAGS = new RegExp(`^/v2/${NAME}/tags/list$`)

/** What a request is about; undefined when the registry has no such request. */
export function readRequest (method: string, path: string): RegistryRequest | undefined {
  if (path === '/v2/_catalog') return method === 'GET' ? { scopes: [READ] } : undefined
  if (nameOf(TAGS, path) !== undefined) return method === 'GET' ? { scopes: [READ] } : undefined
  if (nameOf(UPLOADS, path) !== undefined) return method === 'POST' ? { scopes: [WRITE] } : undefined
  if (nameOf(UPLOAD, path) !== undefined) return ['GET', 'PATCH', 'PUT', 'DELETE'].includes(method) ? { scopes: [WRITE] } : undefined
  if (nameOf(BLOB, path) !== undefined) return stored(method)
  const repository = nameOf(MANIFEST, path)
  const reference = MANIFEST.exec(path)?.[2]
  if (repository === undefined || reference === undefined) return undefined
  return method === 'PUT' ? { scopes: [WRITE], push: { repository, reference } } : stored(method)
}

// Whoever pushes asks first what is there already.
function stored (method: string): RegistryRequest | undefined {
  if (method === 'GET') return { scopes: [READ] }
  if (method === 'HEAD') return { scopes: [READ, WRITE] }
  return method === 'DELETE' ? { scopes: [DELETE] } : undefined
}

function nameOf (pattern: RegExp, path: string): string | undefined {
  const name = pattern.exec(path)?.[1]
  return name === undefined || name.length > MAX_NAME_LENGTH ? undefined : name
}
