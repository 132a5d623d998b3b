// The functions of the routes: one per request.
import { createId } from '@paralleldrive/cuid2'
import { durableIdOf } from '../../core/auth/durable-id.ts'
import type { ApiKeyPrincipal, Secrets } from '../../core/contracts/services.ts'
import { createLine } from '../../core/db/line.ts'
import { InvalidRequest } from '../../core/errors/common.ts'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { doUntilDone, untilDone } from '../../core/jobs/until-done.ts'
import type { ResolveHost } from '../../core/library/addresses.ts'
import type { Filter } from '../events/contract.ts'
import { Courier, type CourierParts } from './delivery/courier.ts'
import type { Sender } from './delivery/sender.ts'
import { makeSecret } from './delivery/signature.ts'
import { TooManyWebhooks } from './errors.ts'
import { checkUrl } from './receiver-url.ts'
import type { WebhookRecord } from './record.ts'
import { RESOURCE } from './repository.ts'
import type { WebhookCreate, WebhookListQuery, WebhookPatch } from './schemas.ts'

export interface WebhooksParts extends CourierParts {
  readonly secrets: Secrets
  readonly resolve: ResolveHost
  readonly maxWebhooks: number
  /** @param roots further authorities, PEM */
  readonly senderTo: (url: string, roots: readonly string[]) => Sender
}

const NEW = { status: 'active', attempts: 0, error: null, failedAt: null } as const

export class Webhooks {
  readonly #parts: WebhooksParts
  readonly #couriers = new Map<string, Courier>()
  readonly #locks = createLocks()
  readonly #inLine = createLine()
  readonly #closing = new AbortController()
  #roots: readonly string[] = []

  constructor (parts: WebhooksParts) {
    this.#parts = parts
  }

  /** Continues where an earlier server was. */
  async open (roots: readonly string[]): Promise<void> {
    this.#roots = roots
    const { repository, feed } = this.#parts
    for (const record of await repository.all()) {
      const position = feed.resumed(record.position)
      // Stored before any delivery: the next server no longer knows which events there were now.
      this.#begin(position === record.position ? record : await repository.update(record, { position }))
    }
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#couriers.keys()].map(async (id) => { await this.#end(id) }))
  }

  /** @throws invalid_request, address_refused, too_many_webhooks */
  async create ({ url, filter = {}, enabled = true }: WebhookCreate, key: ApiKeyPrincipal): Promise<{ readonly record: WebhookRecord, readonly secret: string }> {
    const { repository, feed, secrets, maxWebhooks } = this.#parts
    const address = await this.#checked(url, filter)
    return await this.#inLine(async () => {
      if ((await repository.all()).length >= maxWebhooks) throw TooManyWebhooks(maxWebhooks)
      const id = createId()
      const secret = makeSecret()
      const { newest } = await feed.window()
      const record: WebhookRecord = {
        ...NEW, id, keyId: durableIdOf(key), filter, url: address, sealedSecret: secrets.seal(purposeOf(id), secret), isEnabled: enabled, position: newest, deliveredId: null, deliveredAt: null, createdAt: Date.now()
      }
      // When it fails the row may be there all the same: it may have been stored, and the answer lost. Nobody would know its secret.
      await nowOrLater(async () => { await repository.insert(record) }, () => { void untilDone(async () => { await repository.remove(record) }, this.#closing.signal) })
      this.#begin(record)
      return { record, secret }
    })
  }

  /** @throws invalid_request */
  async list ({ status, ...page }: WebhookListQuery): Promise<Found<WebhookRecord>> {
    return await this.#parts.repository.page(status === undefined ? {} : { status }, wantedPage(page))
  }

  /** By id, or the beginning of one. @throws not_found, ambiguous */
  async get (ref: string): Promise<WebhookRecord> {
    return await lookupStored(this.#parts.repository, ref, { what: 'webhook' })
  }

  /**
   * Changes it, and restarts it if it was dead. From then on it has the rights of the calling key: otherwise another key could send what the first one may read to a receiver of its choice.
   * @throws not_found, ambiguous, invalid_request, address_refused
   */
  async update (ref: string, { url, filter, enabled }: WebhookPatch, key: ApiKeyPrincipal): Promise<WebhookRecord> {
    const { id } = await this.get(ref)
    return await this.#locks.hold(id, async () => {
      const known = await this.get(id)
      const address = await this.#checked(url ?? known.url, filter ?? {})
      await this.#end(id)
      return await nowOrLater(async () => {
        const change = { ...NEW, keyId: durableIdOf(key), url: address, filter: filter ?? known.filter, isEnabled: enabled ?? known.isEnabled }
        const record = await this.#parts.repository.update(await this.get(id), change)
        this.#begin(record)
        return record
      }, () => { this.#settle(id) })
    })
  }

  /** @throws not_found, ambiguous */
  async remove (ref: string): Promise<void> {
    const { id } = await this.get(ref)
    await this.#locks.hold(id, async () => {
      await this.#end(id)
      await nowOrLater(async () => { await this.#parts.repository.remove(await this.get(id)) }, () => { this.#settle(id) })
    })
  }

  async #checked (url: string, filter: Filter): Promise<string> {
    if (filter.resources?.includes(RESOURCE) === true) throw InvalidRequest('filter.resources: a webhook tells nothing of webhooks; GET /events does')
    this.#parts.feed.check(filter)
    return await checkUrl(url, this.#parts.resolve)
  }

  #begin (record: WebhookRecord): void {
    const { secrets, senderTo } = this.#parts
    if (!record.isEnabled || record.status === 'dead') return
    const courier = new Courier(this.#parts, record, () => secrets.open(purposeOf(record.id), record.sealedSecret), senderTo(record.url, this.#roots))
    this.#couriers.set(record.id, courier)
    courier.start()
  }

  /** Sees to a webhook whose courier was ended for a change that failed: it may have been stored all the same, and only its answer lost. */
  #settle (id: string): void {
    const { signal } = this.#closing
    const attempt = async (): Promise<void> => {
      await this.#locks.hold(id, async () => {
        // A later change may have been done meanwhile.
        if (this.#couriers.has(id)) return
        const record = await this.#parts.repository.settled(id)
        if (record !== undefined && !signal.aborted) this.#begin(record)
      })
    }
    doUntilDone(attempt, signal, (error) => { this.#parts.log.warn({ err: error, webhook: id }, 'a webhook could not be read, and delivers nothing yet; it is tried again') }).catch(() => {
      // The server stops.
    })
  }

  async #end (id: string): Promise<void> {
    const courier = this.#couriers.get(id)
    this.#couriers.delete(id)
    await courier?.stop()
  }
}

function purposeOf (id: string): string {
  return `webhook:${id}`
}
