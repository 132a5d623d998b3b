// The metrics of published ports. Connections that the host's kernel forwards are not counted.
import { Counter, Gauge, type Registry } from 'prom-client'

export interface PortsMetrics {
  /** a connection, or a UDP peer, came to the server itself. `woken`: for an instance that was awake only then; `refused`: it was not served; `full`: there was no room for it */
  came (outcome: 'relayed' | 'woken' | 'refused' | 'full'): void
}

export interface PortsFigures {
  /** for each published port, how new connections reach the guest */
  readonly ways: readonly string[]
  /** connections and UDP peers that the server relays at this moment, or that wait for an instance */
  readonly open: number
}

/** @param figures are asked for when they are read */
export function createPortsMetrics (registry: Registry, figures: () => PortsFigures): PortsMetrics {
  const came = new Counter({ name: 'berth_ports_connections_total', help: 'Connections and UDP peers that came to the server itself, and what became of them', labelNames: ['outcome'], registers: [registry] })
  registry.registerMetric(new Gauge({
    name: 'berth_ports_connections',
    help: 'Connections and UDP peers that the server relays, or that wait for an instance',
    registers: [],
    collect () { this.set(figures().open) }
  }))
  registry.registerMetric(new Gauge({
    name: 'berth_ports',
    help: 'Published ports, by how a new connection gets there',
    labelNames: ['way'],
    registers: [],
    collect () {
      const { ways } = figures()
      for (const way of ['direct', 'relayed', 'none']) this.set({ way }, ways.filter((each) => each === way).length)
    }
  }))
  return { came (outcome) { came.inc({ outcome }) } }
}
