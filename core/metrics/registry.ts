// The metrics of this process.
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Memory, CPU, event loop and descriptors. To collect them is begun once in a process and has no end: it observes the garbage collector and ticks with the event loop. */
let ofProcess: Registry | undefined

/** Makes the `metrics` service, with the metrics of the process itself already in it. */
export function createMetrics (): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return Registry.merge([ofProcess])
}
