// Limits connections that the server relays, and that wait for an instance: for each instance, for each client, and in all.
import type { PortsConfig } from './manifest.ts'

type Limits = Pick<PortsConfig, 'connections' | 'connectionsPerClient' | 'connectionsInAll'>

export class Admission {
  readonly #limits: Limits
  readonly #onFull: () => void
  readonly #instances = new Map<string, number>()
  readonly #clients = new Map<string, number>()
  #count = 0

  /** @param onFull called for each refused connection */
  constructor (limits: Limits, onFull: () => void) {
    this.#limits = limits
    this.#onFull = onFull
  }

  get count (): number { return this.#count }

  /** @param client its address. @returns a function to call when it leaves; undefined: there is no room for it */
  enter (instanceId: string, client: string): (() => void) | undefined {
    const { connections, connectionsPerClient, connectionsInAll } = this.#limits
    if ((this.#instances.get(instanceId) ?? 0) >= connections || (this.#clients.get(client) ?? 0) >= connectionsPerClient || this.#count >= connectionsInAll) {
      this.#onFull()
      return undefined
    }
    add(this.#instances, instanceId, 1)
    add(this.#clients, client, 1)
    this.#count++
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      add(this.#instances, instanceId, -1)
      add(this.#clients, client, -1)
      this.#count--
    }
  }
}

function add (counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
