// How far things are, for one reader: of each thing only the last word, for no more things than a bound. A slow reader misses the words in between.
import type { StoredEvent } from '../journal/event.ts'

const MOST = 64

export class LatestProgress {
  readonly #events = new Map<string, StoredEvent>()

  add (event: StoredEvent): void {
    const key = `${event.resource} ${event.state.id}`
    this.#events.delete(key)
    this.#events.set(key, event)
    const [oldest] = this.#events.keys()
    if (this.#events.size > MOST && oldest !== undefined) this.#events.delete(oldest)
  }

  isEmpty (): boolean {
    return this.#events.size === 0
  }

  take (): StoredEvent[] {
    const events = [...this.#events.values()]
    this.#events.clear()
    return events
  }
}
