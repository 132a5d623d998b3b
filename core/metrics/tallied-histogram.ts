// A histogram of prom-client's whose values are counted in plain arrays: its own `observe` hashes labels and searches objects at every call.
import { Histogram, type HistogramConfiguration, type LabelValues } from 'prom-client'

/** The values of one set of labels. */
export class Tally {
  readonly #bounds: readonly number[]
  /** how many values are in each bucket alone; the last one is without a bound */
  readonly #counts: number[]
  sum = 0

  constructor (bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  add (value: number): void {
    const bounds = this.#bounds
    let index = 0
    while (index < bounds.length && value > Number(bounds[index])) index += 1
    this.#counts[index] = Number(this.#counts[index]) + 1
    this.sum += value
  }

  /** How many values are at most as large as each bound; the last one is of all values. */
  cumulative (): readonly number[] {
    let total = 0
    return this.#counts.map((count) => { total += count; return total })
  }
}

export class TalliedHistogram<T extends string> extends Histogram<T> {
  readonly #bounds: readonly number[]
  readonly #texts: Pick<HistogramConfiguration<T>, 'name' | 'help'>
  readonly #tallies = new Map<string, { readonly labels: LabelValues<T>, readonly tally: Tally }>()

  constructor (configuration: HistogramConfiguration<T> & { readonly buckets: readonly number[] }) {
    super(configuration)
    this.#bounds = configuration.buckets
    this.#texts = configuration
  }

  /** The one tally of these labels; to be kept by whoever counts. */
  tally (labels: LabelValues<T>): Tally {
    const key = JSON.stringify(labels)
    const found = this.#tallies.get(key)?.tally
    if (found !== undefined) return found
    const tally = new Tally(this.#bounds)
    this.#tallies.set(key, { labels, tally })
    return tally
  }

  /** What prom-client writes its text from, and what its `get` goes by. It is in no type of prom-client's: `request-metrics.test` would notice a change. */
  async getForPromString (): Promise<Exported<T>> {
    const { name, help } = this.#texts
    const values = [...this.#tallies.values()].flatMap(({ labels, tally }) => {
      const counts = tally.cumulative()
      return [
        ...counts.map((value, index) => ({ metricName: `${name}_bucket`, labels: { le: this.#bounds[index] ?? '+Inf' }, sharedLabels: labels, value })),
        { metricName: `${name}_sum`, labels: {}, sharedLabels: labels, value: tally.sum },
        { metricName: `${name}_count`, labels: {}, sharedLabels: labels, value: counts.at(-1) ?? 0 }
      ]
    })
    return await Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values })
  }
}

interface Exported<T extends string> {
  readonly name: string
  readonly help: string
  readonly type: 'histogram'
  readonly aggregator: 'sum'
  readonly values: ReadonlyArray<{ readonly metricName: string, readonly labels: { readonly le?: number | string }, readonly sharedLabels: LabelValues<T>, readonly value: number }>
}
