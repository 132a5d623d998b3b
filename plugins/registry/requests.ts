// The requests that the registry answers, parsed from the raw path: a path outside of this grammar never reaches the store.

export interface RegistryRequest {
  /** scopes, any one of which is enough */
  readonly scopes: readonly string[]
  /** absent: the request is about all of them */
  readonly repository?: string
  /** set when an upload begins; it may name a blob of another repository */
  readonly startsUpload?: true
  /** the store's id of the upload */
  readonly upload?: string
  /** set when this stores a manifest */
  readonly push?: { readonly repository: string, readonly reference: string }
}

export const READ = 'image:read'
export const WRITE = 'image:write'
const DELETE = 'image:delete'

const COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const NAME = `(${COMPONENT}(?:/${COMPONENT})*)`
const TAG = '[A-Za-z0-9_][A-Za-z0-9._-]{0,127}'
const DIGEST = '[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}'
const MAX_NAME_LENGTH = 255

const REPOSITORY = new RegExp(`^${NAME}$`)
const MANIFEST = new RegExp(`^/v2/${NAME}/manifests/(${TAG}|${DIGEST})$`)
const BLOB = new RegExp(`^/v2/${NAME}/blobs/(?:${DIGEST})$`)
const UPLOADS = new RegExp(`^/v2/${NAME}/blobs/uploads/?$`)
const UPLOAD = new RegExp(`^/v2/${NAME}/blobs/uploads/([A-Za-z0-9_=-]{1,128})$`)
const TAGS = new RegExp(`^/v2/${NAME}/tags/list$`)

/** Parses a request; undefined when the registry has no such request. */
export function readRequest (method: string, path: string): RegistryRequest | undefined {
  if (path === '/v2/_catalog') return method === 'GET' ? { scopes: [READ] } : undefined
  const tags = nameOf(TAGS, path)
  if (tags !== undefined) return method === 'GET' ? { scopes: [READ], repository: tags } : undefined
  const uploads = nameOf(UPLOADS, path)
  if (uploads !== undefined) return method === 'POST' ? { scopes: [WRITE], repository: uploads, startsUpload: true } : undefined
  const upload = nameOf(UPLOAD, path)
  if (upload !== undefined) return ['GET', 'PATCH', 'PUT', 'DELETE'].includes(method) ? { scopes: [WRITE], repository: upload, upload: UPLOAD.exec(path)?.[2] ?? '' } : undefined
  const blob = nameOf(BLOB, path)
  if (blob !== undefined) return stored(method, blob)
  const repository = nameOf(MANIFEST, path)
  const reference = MANIFEST.exec(path)?.[2]
  if (repository === undefined || reference === undefined) return undefined
  return method === 'PUT' ? { scopes: [WRITE], repository, push: { repository, reference } } : stored(method, repository)
}

/** Whether a text is the name of a repository. */
export function isRepository (text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && REPOSITORY.test(text)
}

// A client that pushes first checks what exists.
function stored (method: string, repository: string): RegistryRequest | undefined {
  if (method === 'GET') return { scopes: [READ], repository }
  if (method === 'HEAD') return { scopes: [READ, WRITE], repository }
  return method === 'DELETE' ? { scopes: [DELETE], repository } : undefined
}

function nameOf (pattern: RegExp, path: string): string | undefined {
  const name = pattern.exec(path)?.[1]
  return name === undefined || name.length > MAX_NAME_LENGTH ? undefined : name
}
