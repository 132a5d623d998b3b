// The images service: the functions of the routes, built on names, attempts and contents.
import type { EventBus, Logger, RunResult } from '../../core/contracts/services.ts'
import { NotFound } from '../../core/errors/common.ts'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { RepositoryForbidden } from '../../core/http/errors.ts'
import { sameCredentials, usableCredentials } from '../../core/library/oci/credentials.ts'
import { InvalidName } from '../../core/library/oci/errors.ts'
import { LOCAL_DOMAIN, localReference, parseReference } from '../../core/library/oci/reference.ts'
import type { Attempts } from './attempts.ts'
import type { Contents } from './contents.ts'
import type { ImageService, ImageSources, LocatedImage, OpenRegistry, ReadyImage, RegistryAccess, RegistryCredentials, ToolOptions, WantedManifest } from './contract.ts'
import { ImageFailed, ImageNotReady, PullConflict } from './errors.ts'
import { fetchManifest } from './fetch-manifest.ts'
import type { Folders } from './folders.ts'
import { detailsBody, MOST_USERS, type ImageDetails } from './layers/view.ts'
import type { Names } from './names.ts'
import type { FileOwners } from './owners.ts'
import { checkPlatform, type Platform } from './platform.ts'
import { attempt, bare, isUnderWay, present, type ContentRow, type ImageRecord, type TagRow } from './record.ts'
import type { ImagesRepository } from './repository.ts'
import { watchName } from './watch.ts'
import type { ImageListQuery } from './schemas.ts'
import type { RegistryTool } from './way/registry-tool.ts'

export interface PullOptions {
  readonly credentials?: RegistryCredentials | undefined
  readonly tags?: Readonly<Record<string, string>> | undefined
  readonly platform?: string | undefined
}

export interface ImagesDeps {
  readonly repository: ImagesRepository
  readonly names: Names
  readonly attempts: Attempts
  readonly contents: Contents
  readonly folders: Folders
  readonly owners: FileOwners
  readonly log: Logger
  readonly events: EventBus
  readonly host: Platform
  readonly openUpstream: (options: OpenRegistry) => Promise<RegistryAccess>
  readonly tool: RegistryTool
}

/** Whether the caller may write to a repository. */
type MayWrite = (repository: string) => boolean

const anywhere: MayWrite = () => true

type Find = (digest: string) => ContentRow | undefined

/** Everything that the routes need, beyond the interface for other plugins. */
export class Images implements ImageService, ImageSources {
  readonly #deps: ImagesDeps
  #unsubscribe: (() => void) | undefined

  constructor (deps: ImagesDeps) {
    this.#deps = deps
  }

  async pull (written: string, options: PullOptions = {}): Promise<ImageRecord> {
    const { names, attempts, contents, host } = this.#deps
    if (options.platform !== undefined) checkPlatform(options.platform, host)
    const credentials = usableCredentials(options.credentials)
    const { reference, tag } = await names.locate(written)
    const { name } = reference
    const asking = attempts.get(name)
    const coming = tag?.nextDigest === undefined ? undefined : contents.inFlight(tag.nextDigest)
    const busy = asking?.request ?? coming
    if (busy !== undefined && credentials !== undefined && !sameCredentials(busy.credentials, credentials)) throw PullConflict(name)
    if (asking === undefined && coming !== undefined) return await this.#attempt(name)
    await attempts.outcome(attempts.begin({ reference, credentials, tags: options.tags }))
    return await this.#attempt(name)
  }

  async require (written: string, waitMs: number, signal?: AbortSignal): Promise<ReadyImage> {
    const deadline = performance.now() + waitMs
    const { reference: { name } } = await this.#deps.names.locate(written)
    const watch = watchName(this.#deps.events, name)
    try {
      if (await this.#deps.repository.tag(name) === undefined) await this.pull(written)
      for (;;) {
        const image = await this.#newest(name)
        if (image.status === 'ready') return this.#ready(image)
        if (image.status === 'failed') throw ImageFailed(name, image.error ?? 'it could not be pulled')
        const leftMs = deadline - performance.now()
        if (leftMs <= 0) throw ImageNotReady(name, image.status)
        await watch.next(leftMs, signal)
      }
    } finally {
      watch.close()
    }
  }

  /** @throws invalid_request */
  async list ({ name, status, tags, ...page }: ImageListQuery): Promise<Found<ImageRecord>> {
    const { repository } = this.#deps
    const found = await repository.page({
      ...name === undefined ? {} : { name: await this.#nameOf(name) }, ...status === undefined ? {} : { status }, ...tags === undefined ? {} : { tags }
    }, wantedPage(page))
    const contents = new Map((await repository.contentsOf(found.items)).map((content) => [content.digest, content]))
    return { ...found, items: found.items.map((tag) => present(tag, (digest) => contents.get(digest), this.#position)) }
  }

  /** The stored name, for any way to write it. */
  async #nameOf (written: string): Promise<string> {
    const { reference, tag } = await this.#deps.names.locate(written)
    return tag?.name ?? reference.name
  }

  /** Whether no pull is under way for a name; also when there is no such name. */
  async isAtRest (name: string): Promise<boolean> {
    const tag = await this.#deps.repository.tag(name)
    if (tag === undefined) return true
    const { status } = await this.#newest(name)
    return status === 'ready' || status === 'failed'
  }

  async get (written: string): Promise<ImageRecord> {
    const { reference, tag } = await this.#deps.names.locate(written)
    if (tag === undefined) throw NotFound('image', reference.name)
    return present(tag, await this.#finder(tag), this.#position)
  }

  /** Its layers, what they share with other images, and who uses it; undefined until its digest is known. */
  async details ({ digest }: Pick<ImageRecord, 'digest'>): Promise<ImageDetails | undefined> {
    const { repository } = this.#deps
    const content = digest === '' ? undefined : await repository.content(digest)
    if (content === undefined) return undefined
    const [layers, names, holders] = await Promise.all([repository.layers(digest), repository.names(digest), repository.holders(digest, MOST_USERS)])
    return detailsBody({ layerCount: content.layerCount, layers, compressedBytes: content.layerBytes, diskBytes: content.sizeBytes, names: names.slice(0, MOST_USERS), holders })
  }

  async remove (written: string, mayWrite: MayWrite = anywhere): Promise<void> {
    const { names, attempts, contents, repository, events } = this.#deps
    const { reference } = await names.locate(written)
    const { name, repository: place } = reference
    if (!mayWrite(place)) throw RepositoryForbidden(place)
    const digests = await attempts.replace({ reference }, async () => await repository.removeTag(name))
    if (digests === undefined) throw NotFound('image', name)
    await contents.collect(digests)
    // wakes the callers that wait for it
    events.emit('image.changed', { name, status: 'failed' })
  }

  /** Gives another name to an image; nothing is pulled. */
  async alias (written: string, target: string, mayWrite: MayWrite = anywhere): Promise<ImageRecord> {
    const { names, attempts, contents, repository, events } = this.#deps
    const source = await this.get(written)
    if (source.status !== 'ready') throw ImageNotReady(source.name, source.status)
    const { reference } = await names.locate(target)
    if (reference.digest !== undefined) throw InvalidName(target, 'a tag is needed here, not a digest', 'target')
    if (!mayWrite(reference.repository)) throw RepositoryForbidden(reference.repository)
    const before = await attempts.replace({ reference }, async () => {
      const digests = await repository.assign({ name: reference.name, repository: reference.repository, tags: undefined }, source.digest)
      if (digests === undefined) throw NotFound('image', source.name)
      return digests
    })
    await contents.collect(before)
    events.emit('image.changed', { name: reference.name, status: 'ready' })
    return await this.get(reference.name)
  }

  requirePlatform (platform: string): void {
    checkPlatform(platform, this.#deps.host)
  }

  async byDigest (digest: string): Promise<ReadyImage | undefined> {
    const { repository } = this.#deps
    const content = await repository.content(digest)
    if (content === undefined || content.status !== 'ready') return undefined
    for (const name of await repository.names(digest)) {
      const tag = await repository.tag(name)
      if (tag?.digest === digest) return this.#ready(present(tag, await this.#finder(tag), this.#position))
    }
    return this.#ready(bare(content, this.#position))
  }

  async hold (digest: string, holder: string): Promise<void> {
    if (!await this.#deps.repository.hold(digest, holder)) throw NotFound('image', digest)
  }

  async release (digest: string, holder: string): Promise<void> {
    await this.#deps.repository.release(digest, holder)
    await this.#deps.contents.collect([digest])
  }

  async retain (kind: string, holders: ReadonlySet<string>): Promise<void> {
    for (const { digest, holder } of await this.#deps.repository.heldBy(kind)) if (!holders.has(holder)) await this.release(digest, holder)
  }

  async locate (written: string): Promise<LocatedImage> {
    const image = await this.get(written)
    const { repository } = this.#deps
    const [content, named] = await Promise.all([repository.content(image.digest), repository.repositories(image.digest)])
    // Only pushed images are in the built-in registry; an additional name of an image is in no registry at all.
    const local = named.filter((each) => each.startsWith(`${LOCAL_DOMAIN}/`))
    return { ...image, origins: [...new Set([...local, ...content === undefined ? [] : [content.repository]])] }
  }

  async openRegistry (options: OpenRegistry): Promise<RegistryAccess> {
    return await this.#deps.openUpstream(options)
  }

  async manifest (wanted: WantedManifest, options: ToolOptions): Promise<string> {
    return await fetchManifest(async (...run) => await this.skopeo(...run), wanted, options)
  }

  async skopeo (args: readonly string[], registries: readonly RegistryAccess[], options: ToolOptions): Promise<RunResult> {
    return await this.#deps.tool.run(args, registries, options)
  }

  /** Stores an image that was pushed to the built-in registry, and starts to make it usable. */
  async pushed (path: string, tag: string, host: string): Promise<void> {
    const { attempts, repository } = this.#deps
    const reference = localReference(path, { tag })
    // what was pushed before under this name is no longer wanted
    await attempts.replace({ reference, pushed: true }, async () => {
      await repository.beginAttempt({ name: reference.name, repository: reference.repository, tags: undefined })
      const alias = aliasOf(host, path, tag)
      if (alias !== undefined && alias !== reference.name) await repository.addAlias(alias, reference.name)
    })
    attempts.begin({ reference, background: true, pushed: true })
  }

  /** Why no image can be unpacked on this host, if so. Must be called before `open`. */
  async obstacle (): Promise<string | undefined> {
    const { owners, log } = this.#deps
    const obstacle = await owners.open()
    if (obstacle === undefined && !owners.mapsAll) log.warn('only images whose files all belong to root can be unpacked: without root, others take newuidmap (package uidmap) and a range for this user in /etc/subuid and /etc/subgid')
    return obstacle
  }

  /** Resumes what an earlier server left, and listens for pushes to the built-in registry. */
  async open (): Promise<void> {
    const { attempts, contents, repository, events } = this.#deps
    this.#unsubscribe = events.on('registry.pushed', (event) => {
      // Only a tag is a name that a user chose; the parts of a multi-platform image are pushed by digest.
      if (!event.reference.includes(':')) event.waitUntil(this.pushed(event.repository, event.reference, event.host))
    })
    await contents.recover()
    const known = new Set((await repository.contents()).map((row) => row.digest))
    for (const tag of await repository.tags()) {
      const isLost = tag.nextDigest !== undefined && !known.has(tag.nextDigest)
      if (tag.state === 'resolving' || isLost) attempts.begin({ reference: parseReference(tag.name), background: true })
    }
  }

  /** Ends running work, so that the next start can resume it. */
  async close (): Promise<void> {
    this.#unsubscribe?.()
    await this.#deps.attempts.close()
    await this.#deps.contents.close()
    await this.#deps.tool.close()
  }

  readonly #position = (digest: string): number | undefined => this.#deps.contents.position(digest)

  async #finder (tag: TagRow): Promise<Find> {
    const digests = [tag.digest, tag.nextDigest].filter((digest) => digest !== undefined)
    const rows = await Promise.all(digests.map((digest) => this.#deps.repository.content(digest)))
    return (digest) => rows.find((row) => row?.digest === digest)
  }

  async #attempt (name: string): Promise<ImageRecord> {
    const tag = await this.#deps.repository.tag(name)
    if (tag === undefined) throw NotFound('image', name)
    return attempt(tag, await this.#finder(tag), this.#position)
  }

  // The latest request is the one that runs, so it is waited for; if it fails, the name keeps its previous meaning.
  async #newest (name: string): Promise<ImageRecord> {
    const tag = await this.#deps.repository.tag(name)
    if (tag === undefined) throw NotFound('image', name)
    const find = await this.#finder(tag)
    return isUnderWay(tag, find) ? attempt(tag, find, this.#position) : present(tag, find, this.#position)
  }

  #ready (image: ImageRecord): ReadyImage {
    return { ...image, status: 'ready', rootfs: this.#deps.folders.rootfs(image.digest) }
  }
}

// The client chooses the Host header: an invalid registry name gives no alias.
function aliasOf (host: string, path: string, tag: string): string | undefined {
  try {
    return parseReference(`${host}/${path}:${tag}`).name
  } catch (error) {
    if (InvalidName.is(error)) return undefined
    throw error
  }
}
