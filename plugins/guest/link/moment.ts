// An event that happens at most once; listeners that are added afterwards are called too, since the event may come before them.
import type { Logger } from '../../../core/contracts/services.ts'

export class Moment<T> {
  readonly #listeners = new Set<(value: T) => void>()
  readonly #log: Logger
  #happened: { readonly value: T } | undefined

  constructor (log: Logger) { this.#log = log }

  on (listener: (value: T) => void): () => void {
    if (this.#happened === undefined) {
      this.#listeners.add(listener)
      return () => { this.#listeners.delete(listener) }
    }
    const { value } = this.#happened
    let wanted = true
    // Later, so that the caller has its unsubscriber before the first call.
    queueMicrotask(() => { if (wanted) this.#tell(listener, value) })
    return () => { wanted = false }
  }

  happen (value: T): void {
    if (this.#happened !== undefined) return
    this.#happened = { value }
    for (const listener of this.#listeners) this.#tell(listener, value)
    this.#listeners.clear()
  }

  forget (): void { this.#listeners.clear() }

  #tell (listener: (value: T) => void, value: T): void {
    try {
      listener(value)
    } catch (error) {
      this.#log.error({ err: error }, 'a listener of a guest link failed')
    }
  }
}
