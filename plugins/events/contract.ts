// What other plugins may use of events. Types only.

/** What is wanted; what is left out does not matter. */
export interface Filter {
  readonly resources?: readonly string[]
  /** ids, beginnings of ids, or names */
  readonly ids?: readonly string[]
  readonly tags?: Readonly<Record<string, string>>
}

export interface FeedEvent {
  readonly id: number
  readonly resource: string
  /** the event as JSON, as GET /events has it */
  readonly body: string
}

export interface FeedPage {
  /** oldest first */
  readonly events: readonly FeedEvent[]
  /** how far it goes, with what was not wanted */
  readonly at: number
}

/** The service `eventFeed`: the committed changes of this host, to be read on from any place. */
export interface EventFeed {
  /** @throws invalid_request for a kind of resources that is not there */
  check (filter: Filter): void
  /** Places from which it can be read on. */
  window (): Promise<{ readonly oldest: number, readonly newest: number }>
  /**
   * The next events that are wanted; `undefined` when some after `place` are gone.
   * @param may whether the reader has a scope
   */
  page (place: number, filter: Filter, may: (scope: string) => boolean): Promise<FeedPage | undefined>
  /** Resolves once there may be more after a place, and in any case after `timeoutMs` or on abort. */
  wait (place: number, timeoutMs: number, signal: AbortSignal): Promise<void>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly eventFeed: EventFeed
  }
}
