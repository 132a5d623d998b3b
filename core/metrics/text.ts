// The text of all metrics of a registry, without those that cannot be told now: one that asks a database which is away must not take all others with it.
import type { Registry } from 'prom-client'
import type { Logger } from '../contracts/services.ts'
import { within } from '../jobs/deadline.ts'
import { unlessAborted } from '../jobs/unless-aborted.ts'

/** How long a metric is waited for. Prometheus waits 10 s for all of them together, unless it is told otherwise. */
const TIMEOUT_MS = 2000

export class MetricsText {
  readonly #registry: Registry
  readonly #log: Logger
  /** By name, those that are being told: who reads meanwhile gets the same, so that what does not answer is asked once, and no two collect one metric at a time. */
  readonly #going = new Map<string, Promise<string>>()
  /** those that the last text was without */
  #missing: ReadonlySet<string> = new Set()

  constructor (registry: Registry, log: Logger) {
    this.#registry = registry
    this.#log = log
  }

  get contentType (): string { return this.#registry.contentType }

  /** In the form and the order of the registry's own text. Never rejects. */
  async read (): Promise<string> {
    const failures = new Map<string, unknown>()
    const texts = await Promise.all(this.#registry.getMetricsAsArray().map(async ({ name }) => {
      try {
        return [await within(TIMEOUT_MS, [], async (signal) => await unlessAborted(signal, this.#tell(name)))]
      } catch (error) {
        failures.set(name, error)
        return []
      }
    }))
    this.#note(failures)
    return `${texts.flat().join('\n\n')}\n`
  }

  #tell (name: string): Promise<string> {
    const told = this.#going.get(name) ?? this.#registry.getSingleMetricAsString(name).finally(() => { this.#going.delete(name) })
    this.#going.set(name, told)
    return told
  }

  /** Logs those that are missing since now, and those that are no longer. What takes one away takes several with it: the first error speaks for all. */
  #note (failures: ReadonlyMap<string, unknown>): void {
    const fresh = [...failures.keys()].filter((name) => !this.#missing.has(name))
    const [first] = fresh
    if (first !== undefined) this.#log.warn({ err: failures.get(first), metrics: fresh }, 'metrics cannot be told; they are left out until they can')
    const back = [...this.#missing].filter((name) => !failures.has(name))
    if (back.length > 0) this.#log.info({ metrics: back }, 'metrics are told again')
    this.#missing = new Set(failures.keys())
  }
}
