// Domain events within this process.
import type { DomainEvents, EventBus, Logger } from '../contracts/services.ts'

type Listener = (event: never) => unknown

/** The `events` service. Listeners run at once, in the order in which they were added; what a listener throws is logged, and the others still run. */
export function createEventBus (log: Logger): EventBus {
  const listeners = new Map<PropertyKey, Set<Listener>>()
  const report = (name: PropertyKey, error: unknown): void => log.error({ err: error, event: String(name) }, 'event listener failed')

  return {
    emit<E extends keyof DomainEvents> (name: E, event: DomainEvents[E]): void {
      // a copy: a listener may remove itself or add others while it runs
      for (const listener of [...listeners.get(name) ?? []]) {
        try {
          const result: unknown = (listener as (event: DomainEvents[E]) => unknown)(event)
          if (result instanceof Promise) result.catch((error: unknown) => report(name, error))
        } catch (error) {
          report(name, error)
        }
      }
    },
    on (name, listener) {
      const entry: Listener = (event) => listener(event)
      const set = listeners.get(name) ?? new Set<Listener>()
      listeners.set(name, set.add(entry))
      return () => { set.delete(entry) }
    }
  }
}
