// Progress reports for one reader: only the latest for each object, and for a limited number of objects. A slow reader misses earlier ones.
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
