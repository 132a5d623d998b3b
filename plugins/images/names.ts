// Finds the image that a reference means. An image pushed to the built-in registry is stored once, as `localhost/<repository>:<tag>`,
// and can be found by the server's own host names, by the host name it was pushed to, and by its short name unless a pulled image has that.
import { LOCAL_DOMAIN, localReference, parseReference, type ImageReference } from '../../core/library/oci/reference.ts'
import type { RegistrySource } from '../registry/contract.ts'
import type { TagRow } from './record.ts'
import type { ImagesRepository } from './repository.ts'

export interface Located {
  /** the reference to pull, under the name to store it by */
  readonly reference: ImageReference
  readonly tag: TagRow | undefined
}

export interface Names {
  /** @throws InvalidName */
  locate (written: string): Promise<Located>
}

export interface NamesDeps {
  readonly repository: ImagesRepository
  readonly registry: RegistrySource | undefined
  readonly defaultRegistry: string
}

export function createNames ({ repository, registry, defaultRegistry }: NamesDeps): Names {
  const rowOf = async (reference: ImageReference): Promise<TagRow | undefined> => {
    const exact = await repository.tag(reference.name)
    if (exact !== undefined || reference.digest === undefined) return exact
    // a digest that a tag of the repository has already pulled needs no row of its own
    const sibling = await repository.sibling(reference.repository, reference.digest)
    return sibling === undefined ? undefined : byDigest(sibling, reference)
  }
  return {
    async locate (written) {
      const parsed = parseReference(written, defaultRegistry)
      const local = localReference(parsed.shortPath, parsed)
      if (parsed.explicitDomain && (parsed.domain === LOCAL_DOMAIN || registry?.isLocal(parsed.domain) === true)) {
        return { reference: local, tag: await rowOf(local) }
      }
      const tag = await rowOf(parsed)
      if (tag !== undefined) return { reference: parsed, tag }
      // A name with a host means only that host, except for images that were pushed here under it.
      const pushed = parsed.explicitDomain ? await repository.aliased(parsed.name) : await rowOf(local)
      if (pushed === undefined) return { reference: parsed, tag: undefined }
      return { reference: parseReference(pushed.name, defaultRegistry), tag: pushed }
    }
  }
}

function byDigest (sibling: TagRow, reference: ImageReference): TagRow {
  const isNow = sibling.digest === reference.digest
  return {
    ...sibling,
    name: reference.name,
    digest: isNow ? reference.digest : undefined,
    nextDigest: isNow ? undefined : reference.digest,
    state: 'resolved',
    error: undefined
  }
}
