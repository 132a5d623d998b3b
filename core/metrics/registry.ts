// The metrics of this process.
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Makes the `metrics` service, with the metrics of the process itself (memory, CPU, event loop, descriptors) already in it. */
export function createMetrics (): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}
