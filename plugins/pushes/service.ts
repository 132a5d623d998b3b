// The functions of the routes: one per request.
import { createId } from '@paralleldrive/cuid2'
import { createLine } from '../../core/db/line.ts'
import { Forbidden, RepositoryForbidden } from '../../core/http/errors.ts'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { untilDone } from '../../core/jobs/until-done.ts'
import { credentialsOf } from '../../core/library/oci/credentials.ts'
import { isSharedCache, SHARED_CACHES_SCOPE } from '../../core/library/oci/shared-caches.ts'
import type { ImageSources } from '../images/contract.ts'
import { ImageNotReady } from './errors.ts'
import type { Folders } from './folders.ts'
import type { PushRecord } from './record.ts'
import type { PushRepository } from './repository.ts'
import type { Runner } from './runner.ts'
import type { PushCreate, PushListQuery } from './schemas.ts'
import { parseTarget } from './target.ts'

const INTERRUPTED = 'the push was interrupted by a restart of the server, which keeps no credentials; push the image again with them'

export interface PushesParts {
  readonly repository: PushRepository
  readonly folders: Folders
  readonly runner: Runner
  readonly sources: ImageSources
  /** whether a host is that of the built-in registry */
  readonly isOwn: (host: string) => boolean
}

/** What the key that asks may do. */
export interface Rights {
  /** its durable id */
  readonly keyId: string | null
  readonly mayWrite: (repository: string) => boolean
  readonly allows: (scope: string) => boolean
}

/** A push with its position in the queue. */
export interface ShownPush extends PushRecord { readonly queuePosition: number | undefined }

export class Pushes {
  readonly #parts: PushesParts
  readonly #inLine = createLine()
  readonly #closing = new AbortController()

  constructor (parts: PushesParts) {
    this.#parts = parts
  }

  /** Resumes what an earlier server left, and returns it. */
  async open (): Promise<readonly PushRecord[]> {
    const { folders, repository, runner } = this.#parts
    await folders.open()
    const resumed = await repository.takeUp(INTERRUPTED, Date.now())
    for (const push of resumed) runner.add(push, undefined)
    return resumed
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await this.#parts.runner.close()
  }

  /** @throws Forbidden, RepositoryForbidden, … */
  async create (body: PushCreate, { keyId, mayWrite, allows }: Rights): Promise<ShownPush> {
    const { repository, runner, sources, isOwn } = this.#parts
    const target = parseTarget(body.target, isOwn)
    if (!mayWrite(target.repository)) throw RepositoryForbidden(target.repository)
    // The built-in registry admits its own server, whoever asks that.
    if (target.isOwn && isSharedCache(target.path) && !allows(SHARED_CACHES_SCOPE)) throw Forbidden(SHARED_CACHES_SCOPE)
    const given = credentialsOf(body.credentials)
    const credentials = target.isOwn ? undefined : given
    const { name, digest, status, origins } = await sources.locate(body.image)
    if (status !== 'ready') throw ImageNotReady(name, status)
    // Rows and the queue have the same order.
    return await this.#inLine(async () => {
      const id = createId()
      // When it fails the row may be there all the same: it may have been stored, and the answer lost. Nobody would run it.
      const push = await nowOrLater(async () => await repository.insert({
        id,
        image: name,
        digest,
        origins,
        target: target.name,
        destination: target.destination,
        insecure: body.insecure === true,
        isLent: credentials !== undefined,
        keyId,
        createdAt: Date.now()
      }), () => { void untilDone(async () => { await repository.remove(id) }, this.#closing.signal) })
      runner.add(push, credentials)
      return this.#show(push)
    })
  }

  /** @throws invalid_request */
  async list ({ status, ...page }: PushListQuery): Promise<Found<ShownPush>> {
    const found = await this.#parts.repository.page(status === undefined ? {} : { status }, wantedPage(page))
    return { ...found, items: found.items.map((push) => this.#show(push)) }
  }

  /** By id, or the beginning of one. @throws not_found, ambiguous */
  async get (ref: string): Promise<ShownPush> {
    return this.#show(await lookupStored(this.#parts.repository, ref, { what: 'push' }))
  }

  /** Whether a push has ended; also true when it was removed. */
  async isOver (id: string): Promise<boolean> {
    const status = (await this.#parts.repository.find(id))?.status
    return status === undefined || status === 'pushed' || status === 'failed'
  }

  #show (push: PushRecord): ShownPush {
    return { ...push, queuePosition: push.status === 'queued' ? this.#parts.runner.position(push.id) : undefined }
  }
}
