// Parses the target of a push.
import { LOCAL_DOMAIN, localReference, parseReference } from '../../core/library/oci/reference.ts'
import { InvalidTarget } from './errors.ts'

export interface Target {
  /** normalised reference */
  readonly name: string
  /** the same, but `localhost/…` for the built-in registry */
  readonly destination: string
  /** `host/path` of `destination` */
  readonly repository: string
  /** without the host */
  readonly path: string
  readonly isOwn: boolean
}

/**
 * Parses a target: a registry's host, a repository, and a tag; without a tag it is `latest`.
 * @param isOwn whether a host is that of the built-in registry
 * @throws InvalidName, InvalidTarget
 */
export function parseTarget (written: string, isOwn: (host: string) => boolean): Target {
  const reference = parseReference(written, undefined, 'target')
  if (!reference.explicitDomain) throw InvalidTarget(written, 'must begin with the host of a registry, as in registry.example.com/team/app:1')
  if (reference.digest !== undefined) throw InvalidTarget(written, 'must have a tag, not a digest: the digest is that of the image')
  const own = reference.domain === LOCAL_DOMAIN || isOwn(reference.domain)
  return {
    name: reference.name,
    destination: own ? localReference(reference.path, reference).name : reference.name,
    repository: `${own ? LOCAL_DOMAIN : reference.domain}/${reference.path}`,
    path: reference.path,
    isOwn: own
  }
}
