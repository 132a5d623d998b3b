// Delivers the events to one receiver, in their order, each at least once, and stores its position.
import type { ApiKeyPrincipal, ApiKeys, Logger } from '../../../core/contracts/services.ts'
import { withSignals } from '../../../core/jobs/deadline.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { SecretUnavailable } from '../../../core/secrets/errors.ts'
import type { EventFeed, FeedEvent } from '../../events/contract.ts'
import type { WebhooksMetrics } from '../metrics.ts'
import type { Progress, WebhookRecord } from '../record.ts'
import { RESOURCE, type WebhookRepository } from '../repository.ts'
import { pauseAfter, type Backoff } from './backoff.ts'
import type { DeliveryFailure, Sender } from './sender.ts'
import { signed } from './signature.ts'

export interface CourierParts {
  readonly log: Logger
  readonly feed: EventFeed
  readonly repository: WebhookRepository
  readonly apiKeys: ApiKeys
  readonly metrics: WebhooksMetrics
  readonly backoff: Backoff
}

interface Delivery { readonly id: string, readonly body: string }

/** After a crash, at most this time's deliveries are repeated. */
const SAVE_MS = 1000
const IDLE_MS = 30_000
const AGAIN_MS = 1000

export class Courier {
  readonly #parts: CourierParts
  readonly #sender: Sender
  readonly #openSecret: () => string
  readonly #ending = new AbortController()
  #record: WebhookRecord
  #place: number
  #delivered: Pick<Progress, 'deliveredId' | 'deliveredAt'>
  #savedAt = performance.now()
  #running: Promise<void> = Promise.resolve()

  constructor (parts: CourierParts, record: WebhookRecord, openSecret: () => string, sender: Sender) {
    this.#parts = parts
    this.#record = record
    this.#openSecret = openSecret
    this.#sender = sender
    this.#place = record.position
    this.#delivered = { deliveredId: record.deliveredId, deliveredAt: record.deliveredAt }
  }

  start (): void {
    this.#running = this.#run()
  }

  /** Returns once nothing more is sent or stored. */
  async stop (): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #run (): Promise<void> {
    const { signal } = this.#ending
    const { log } = this.#parts
    while (!signal.aborted) {
      try {
        await this.#deliverAll(signal)
        break
      } catch (error) {
        log.warn({ err: error, webhook: this.#record.id }, 'events could not be read, or how far a webhook is could not be stored; it is tried again')
        await pause(AGAIN_MS, signal)
      }
    }
    this.#sender.close()
    await this.#save().catch((error: unknown) => { log.warn({ err: error, webhook: this.#record.id }, 'how far a webhook is could not be stored: its last events are delivered again') })
  }

  /** Returns when it is stopped or dead. */
  async #deliverAll (stopped: AbortSignal): Promise<void> {
    const { apiKeys } = this.#parts
    const principal = await apiKeys.current(this.#record.keyId)
    if (principal === undefined) { await this.#die('the key that made it has ended'); return }
    try {
      this.#openSecret()
    } catch (error) {
      if (!SecretUnavailable.is(error)) throw error
      await this.#die(error.message)
      return
    }
    const ended = new AbortController()
    const unwatch = apiKeys.whenEnded(principal, () => { ended.abort() })
    try {
      await withSignals([stopped, ended.signal], async (signal) => { await this.#deliverTo(principal, signal) })
    } finally {
      unwatch()
    }
    if (ended.signal.aborted && !stopped.aborted) await this.#die('the key that made it has ended')
  }

  async #deliverTo (principal: ApiKeyPrincipal, signal: AbortSignal): Promise<void> {
    const { apiKeys, feed } = this.#parts
    while (!signal.aborted) {
      const page = await feed.page(this.#place, this.#record.filter, (scope) => apiKeys.allows(principal, scope))
      if (page === undefined) {
        if (!await this.#deliverGap(signal)) break
        continue
      }
      if (!await this.#deliverPage(page.events, signal)) break
      const isNew = page.at > this.#place
      this.#place = Math.max(this.#place, page.at)
      if (isNew && page.events.length > 0) continue
      if (this.#isSaveDue()) await this.#save()
      await feed.wait(this.#place, this.#saveAfterMs(), signal)
    }
  }

  async #deliverPage (events: readonly FeedEvent[], signal: AbortSignal): Promise<boolean> {
    for (const { id, resource, body } of events) {
      // Events about webhooks would cause further events without end.
      if (resource !== RESOURCE) {
        if (!await this.#deliver({ id: String(id), body }, signal)) return false
        this.#delivered = { deliveredId: id, deliveredAt: Date.now() }
      }
      this.#place = id
      if (this.#isSaveDue()) await this.#save()
    }
    return true
  }

  /** Reports the events that the receiver has missed, once the journal no longer has them. */
  async #deliverGap (signal: AbortSignal): Promise<boolean> {
    const { oldest } = await this.#parts.feed.window()
    const id = `gap-${this.#place}-${oldest}`
    const body = JSON.stringify({ type: 'gap', id, timestamp: new Date().toISOString(), data: { after_id: String(this.#place), oldest_id: String(oldest) } })
    if (!await this.#deliver({ id, body }, signal)) return false
    this.#place = oldest
    await this.#save()
    return true
  }

  /** Retries until the receiver has accepted it; false when it was stopped before, or given up. */
  async #deliver ({ id, body }: Delivery, signal: AbortSignal): Promise<boolean> {
    const { metrics } = this.#parts
    const secret = this.#openSecret()
    while (!signal.aborted) {
      const failure = await this.#sender.send(body, signed(secret, id, body, Date.now()), signal)
      if (failure === undefined) {
        metrics.delivered()
        if (this.#record.attempts > 0) await this.#store({ status: 'active', attempts: 0, error: null, failedAt: null })
        return true
      }
      // The delivery was aborted here.
      if (signal.aborted) return false
      metrics.failed()
      if (!await this.#note(failure, signal)) return false
    }
    return false
  }

  async #note ({ message, isFinal }: DeliveryFailure, signal: AbortSignal): Promise<boolean> {
    const attempts = this.#record.attempts + 1
    const pauseMs = isFinal ? undefined : pauseAfter(attempts, this.#parts.backoff)
    if (pauseMs === undefined) {
      await this.#die(message, attempts)
      return false
    }
    await this.#store({ status: 'failing', attempts, error: message, failedAt: Date.now() })
    await pause(pauseMs, signal)
    return true
  }

  async #die (error: string, attempts = this.#record.attempts): Promise<void> {
    await this.#store({ status: 'dead', attempts, error, failedAt: Date.now() })
    this.#parts.log.warn({ webhook: this.#record.id, reason: error }, 'a webhook is dead')
    this.#ending.abort()
  }

  #isSaveDue (): boolean {
    return this.#place !== this.#record.position && performance.now() - this.#savedAt >= this.#saveAfterMs()
  }

  /** Passing over unwanted events again costs little. */
  #saveAfterMs (): number {
    return this.#delivered.deliveredId === this.#record.deliveredId ? IDLE_MS : SAVE_MS
  }

  async #save (): Promise<void> {
    if (this.#place !== this.#record.position || this.#delivered.deliveredId !== this.#record.deliveredId) await this.#store({})
  }

  async #store (change: Partial<Progress>): Promise<void> {
    this.#record = await this.#parts.repository.update(this.#record, { ...this.#delivered, position: this.#place, ...change })
    this.#savedAt = performance.now()
  }
}
