// The figures of this process that operators watch.
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Makes the `metrics` service, with the figures of the process itself (memory, CPU, event loop, descriptors) already in it. */
export function createMetrics (): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}
