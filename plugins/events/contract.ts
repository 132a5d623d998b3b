// What events offer other plugins. Types only.

/** A selection of events; absent fields do not restrict it. */
export interface Filter {
  readonly resources?: readonly string[]
  /** ids, beginnings of ids, or names */
  readonly ids?: readonly string[]
  readonly tags?: Readonly<Record<string, string>>
}

export interface FeedEvent {
  readonly id: number
  readonly resource: string
  /** the event as JSON, in the form of GET /events */
  readonly body: string
}

export interface FeedPage {
  /** oldest first */
  readonly events: readonly FeedEvent[]
  /** the position after the page, unselected events included */
  readonly at: number
}

/** The service `eventFeed`: the committed changes of this host, readable from any position. */
export interface EventFeed {
  /** @throws invalid_request for an unknown kind of resources */
  check (filter: Filter): void
  /** The range of positions from which reading is possible. */
  window (): Promise<{ readonly oldest: number, readonly newest: number }>
  /** Where to go on from a place that an earlier server has stored. It differs if that server's clock was ahead. */
  resumed (place: number): number
  /**
   * The next selected events; `undefined` when some after `place` were removed.
   * @param may whether the reader has a scope
   */
  page (place: number, filter: Filter, may: (scope: string) => boolean): Promise<FeedPage | undefined>
  /** Resolves once there may be more events after a position, and in any case after `timeoutMs` or on abort. */
  wait (place: number, timeoutMs: number, signal: AbortSignal): Promise<void>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly eventFeed: EventFeed
  }
}
