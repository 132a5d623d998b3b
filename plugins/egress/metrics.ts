// The plugin's own figures, and those of the proxy, which is asked when somebody reads them.
import { Counter, Gauge, type Registry } from 'prom-client'
import { FIGURES, type FigureKind } from '../../proxy/contract/figures.ts'

interface Source {
  readonly revision: number | undefined
  readonly isUp: boolean
  /** text of the proxy's figures; `undefined` while it does not run */
  proxyMetrics (): Promise<string | undefined>
}

export interface EgressMetrics {
  readonly pushes: Counter<'outcome'>
  readonly starts: Counter
}

interface Figure { readonly label: string | undefined, readonly value: number }

/** The proxy's figures that a server hands on. */
const HANDED_ON: ReadonlyArray<FigureKind & { readonly name: string }> = Object.entries<FigureKind>(FIGURES).map(([name, figure]) => ({ name, ...figure })).filter(({ isInside }) => isInside !== true)

const LINE = /^(berth_egress_[a-z_]+)(?:\{[a-z_]+="([^"]*)"\})? ([0-9.e+-]+)$/gm

/** @param source is called at each reading, never before */
export function createMetrics (registry: Registry, source: () => Source): EgressMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, read: (of: Source) => number): Gauge => new Gauge({ name, help, registers, collect () { this.set(read(source())) } })
  gauge('berth_egress_up', 'Whether the proxy answers: 1 or 0', ({ isUp }) => isUp ? 1 : 0)
  gauge('berth_egress_acknowledged_revision', 'Policy revision that the proxy is known to enforce; -1: none', ({ revision }) => revision ?? -1)
  handOn(registers, source)
  return {
    pushes: new Counter({ name: 'berth_egress_pushes_total', help: 'Policy revisions, by what became of them', labelNames: ['outcome'], registers }),
    starts: new Counter({ name: 'berth_egress_proxy_starts_total', help: 'Proxies that this server has started', registers })
  }
}

function handOn (registers: Registry[], source: () => Source): void {
  // All figures of one reading come from one answer.
  let asked: Promise<ReadonlyMap<string, readonly Figure[]>> | undefined
  const figures = async (name: string): Promise<readonly Figure[]> => {
    asked ??= ask(source()).finally(() => { asked = undefined })
    return (await asked).get(name) ?? []
  }
  for (const { name, help, label } of HANDED_ON.filter(({ kind }) => kind === 'counter')) {
    const counter: Counter = new Counter({
      name, help, registers, labelNames: label === undefined ? [] : [label],
      async collect () {
        const found = await figures(name)
        counter.reset()
        // At 0 it would count anew: to Prometheus all of its past would have happened since.
        if (label === undefined) counter.remove()
        for (const figure of found) counter.inc(labelsOf(label, figure), figure.value)
      }
    })
  }
  for (const { name, help, label } of HANDED_ON.filter(({ kind }) => kind === 'gauge')) {
    const gauge: Gauge = new Gauge({
      name, help, registers, labelNames: label === undefined ? [] : [label],
      async collect () {
        const found = await figures(name)
        gauge.reset()
        if (label === undefined) gauge.remove()
        for (const figure of found) gauge.set(labelsOf(label, figure), figure.value)
      }
    })
  }
}

function labelsOf (label: string | undefined, figure: Figure): Record<string, string> {
  return label === undefined || figure.label === undefined ? {} : { [label]: figure.label }
}

/** Empty while the proxy does not run: old figures would look as if nothing happened. */
async function ask (source: Source): Promise<ReadonlyMap<string, readonly Figure[]>> {
  const text = await source.proxyMetrics()
  const found = new Map<string, Figure[]>()
  for (const [, name = '', label, value] of (text ?? '').matchAll(LINE)) found.set(name, [...found.get(name) ?? [], { label, value: Number(value) }])
  return found
}
