// The functions of the routes.
import type { ApiKeyPrincipal, ApiKeys, Logger } from '../../core/contracts/services.ts'
import { OpenStreams } from '../../core/http/open-streams.ts'
import { TooManyStreams } from './errors.ts'
import { timeOf } from './journal/event.ts'
import type { EventJournal } from './journal/journal.ts'
import { startRetention, type Bounds } from './journal/retention.ts'
import type { Snapshot } from './schemas.ts'
import type { Filter } from './contract.ts'
import { checkFilter, filterOf, wantsOf, type EventFilter } from './stream/filter.ts'
import { eventsOf } from './stream/stream.ts'

export interface EventsParts {
  readonly log: Logger
  readonly journal: EventJournal
  readonly apiKeys: ApiKeys
  readonly bounds: Bounds
  readonly maxStreams: number
  readonly heartbeatMs: number
}

export interface StreamRequest {
  readonly filter: EventFilter
  /** the id after which it begins; absent: with the next event */
  readonly after: string | undefined
  /** the key whose share of the streams this one is of */
  readonly owner: ApiKeyPrincipal
  /** the caller as of now; `undefined` once the key has ended */
  readonly principal: () => Promise<ApiKeyPrincipal | undefined>
  readonly signal: AbortSignal
}

export class Events {
  readonly #parts: EventsParts
  readonly #streams: OpenStreams
  #endRetention: (() => Promise<void>) | undefined

  constructor (parts: EventsParts) {
    this.#parts = parts
    this.#streams = new OpenStreams(parts.maxStreams, TooManyStreams)
  }

  get journal (): EventJournal { return this.#parts.journal }

  async open (): Promise<void> {
    const { journal, bounds, log } = this.#parts
    await journal.open()
    this.#endRetention = startRetention(journal, bounds, log)
  }

  async close (): Promise<void> {
    this.#parts.journal.close()
    await this.#endRetention?.()
  }

  openStreams (): number {
    return this.#streams.count
  }

  /** @throws events_expired, invalid_request, too_many_streams */
  async stream ({ filter: query, after, owner, principal, signal }: StreamRequest): Promise<AsyncGenerator<string, void, void>> {
    const { journal, apiKeys, bounds, heartbeatMs } = this.#parts
    const filter = filterOf(query)
    this.checkFilter(filter)
    return await this.#streams.begin(owner, signal, async () => {
      const from = after === undefined ? (await journal.window()).newest : await journal.resume(after)
      const wants = async (): ReturnType<Parameters<typeof eventsOf>[0]['wants']> => {
        const caller = await principal()
        return caller === undefined ? undefined : wantsOf(filter, (scope) => apiKeys.allows(caller, scope))
      }
      return eventsOf({ journal, from, ...bounds, heartbeatMs, wants, signal })
    })
  }

  /** All objects that the caller may see, with the id after which the stream reports their changes. */
  async snapshot (query: EventFilter, principal: ApiKeyPrincipal): Promise<Snapshot> {
    const { journal, apiKeys } = this.#parts
    const filter = filterOf(query)
    this.checkFilter(filter)
    const wants = wantsOf(filter, (scope) => apiKeys.allows(principal, scope))
    // First: a change while the lists are read gets a later id, so the stream reports it again.
    const { newest } = await journal.window()
    const resources = []
    for (const { resource, scope, list } of journal.kinds()) {
      if (!apiKeys.allows(principal, scope)) continue
      for (const state of await list()) {
        const { details, ...rest } = state
        if (wants({ resource, scope, state })) resources.push({ resource, ...rest, ...details })
      }
    }
    return { id: String(newest), timestamp: timeOf(newest), resources }
  }

  /** @throws invalid_request for an unknown kind of resources */
  checkFilter (filter: Filter): void {
    checkFilter(filter, this.#parts.journal.kinds().map(({ resource }) => resource).sort())
  }
}
