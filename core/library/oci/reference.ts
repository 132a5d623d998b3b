// Image references: the form that a user writes, and the normalised form that is stored.
import { InvalidName } from './errors.ts'

/** The host under which images of the built-in registry are stored, whatever name a client used for the server. */
export const LOCAL_DOMAIN = 'localhost'
const DOCKER_HUB = 'docker.io'
const MAX_LENGTH = 400
const MAX_PATH_LENGTH = 255

export interface ImageReference {
  /** normalised, complete: `docker.io/library/alpine:latest` */
  readonly name: string
  /** `docker.io/library/alpine` */
  readonly repository: string
  readonly domain: string
  /** `library/alpine` */
  readonly path: string
  /** the path as written, without the domain: `alpine` */
  readonly shortPath: string
  /** whether the user wrote the domain */
  readonly explicitDomain: boolean
  /** exactly one of tag and digest is set */
  readonly tag: string | undefined
  readonly digest: string | undefined
}

const DOMAIN = /^(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::[0-9]{1,5})?$/
const PATH = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/
const TAG = /^\w[\w.-]{0,127}$/
const DIGEST = /^sha256:[0-9a-f]{64}$/

/**
 * Reads a reference as Docker does: `alpine` → `docker.io/library/alpine:latest`. With a tag and a digest, the digest counts.
 * @param field where it was written, for messages; `name` when absent
 * @throws InvalidName, which says what is wrong with it
 */
export function parseReference (written: string, defaultRegistry = DOCKER_HUB, field?: string): ImageReference {
  const text = written.trim()
  const fail = (why: string): never => { throw InvalidName(written.slice(0, MAX_LENGTH), why, field) }
  if (text === '') fail('it is empty')
  if (text.length > MAX_LENGTH) fail(`it is longer than ${MAX_LENGTH} characters`)
  if (text.includes('://')) fail('leave out the scheme, write host/repository:tag')
  const { rest, tag, digest } = splitEnd(text, fail)
  const slash = rest.indexOf('/')
  const first = slash < 0 ? '' : rest.slice(0, slash)
  const explicitDomain = first !== '' && (/[.:]/.test(first) || first === LOCAL_DOMAIN || first !== first.toLowerCase())
  const shortPath = explicitDomain ? rest.slice(slash + 1) : rest
  const domain = canonicalDomain(explicitDomain ? first : defaultRegistry)
  if (!DOMAIN.test(domain)) fail(`"${domain}" is no registry host`)
  if (shortPath !== shortPath.toLowerCase()) fail('a repository is written in lower case')
  if (shortPath.length > MAX_PATH_LENGTH || !PATH.test(shortPath)) fail(`"${shortPath}" is no repository name`)
  if (!explicitDomain && /^[0-9a-f]{64}$/.test(shortPath)) fail('64 hexadecimal digits are an image id, not a name')
  const path = domain === DOCKER_HUB && !shortPath.includes('/') ? `library/${shortPath}` : shortPath
  return reference({ domain, path, shortPath, explicitDomain, tag, digest })
}

/** The reference under which an image of the built-in registry is stored. */
export function localReference (path: string, end: { readonly tag?: string | undefined, readonly digest?: string | undefined }): ImageReference {
  return reference({ domain: LOCAL_DOMAIN, path, shortPath: path, explicitDomain: true, tag: end.tag, digest: end.digest })
}

/** The same repository by digest. */
export function atDigest (repository: string, digest: string): string {
  return `${repository}@${digest}`
}

type Parts = Omit<ImageReference, 'name' | 'repository'>

function reference (parts: Parts): ImageReference {
  const repository = `${parts.domain}/${parts.path}`
  const name = parts.digest === undefined ? `${repository}:${parts.tag ?? 'latest'}` : atDigest(repository, parts.digest)
  return { ...parts, tag: parts.digest === undefined ? parts.tag ?? 'latest' : undefined, repository, name }
}

function splitEnd (text: string, fail: (why: string) => never): { rest: string, tag?: string, digest?: string } {
  const at = text.indexOf('@')
  const digest = at < 0 ? undefined : text.slice(at + 1)
  if (digest !== undefined && !DIGEST.test(digest)) fail('a digest is sha256: and 64 hexadecimal digits')
  const named = at < 0 ? text : text.slice(0, at)
  const colon = named.lastIndexOf(':')
  const tag = colon > named.lastIndexOf('/') ? named.slice(colon + 1) : undefined
  if (tag !== undefined && !TAG.test(tag)) fail(`"${tag}" is no tag`)
  const rest = tag === undefined ? named : named.slice(0, colon)
  return { rest, tag: digest === undefined ? tag : undefined, digest }
}

// The hub's old names.
function canonicalDomain (domain: string): string {
  return domain === 'index.docker.io' || domain === 'registry-1.docker.io' ? DOCKER_HUB : domain
}
