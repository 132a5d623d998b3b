// The origins that one VM has connections to. Their number is bounded: the one that was not used for longest makes room.
import type { CanonicalHost } from '../contract/canonical-host.ts'
import type { GuestWay } from '../gate/admit.ts'
import { Origin } from './origin.ts'
import { Passing } from './passing.ts'
import type { OriginServices } from './services.ts'

export class OriginPool {
  readonly #services: OriginServices
  readonly #passing: Passing
  readonly #origins = new Map<string, Origin>()

  constructor (services: OriginServices) {
    this.#services = services
    this.#passing = new Passing(services.limits.requests)
  }

  /** The origin of a host at a port; plain and TLS connections have different origins. */
  get (host: CanonicalHost, { secure, port }: GuestWay): Origin {
    const key = `${host.name} ${secure} ${port}`
    const known = this.#origins.get(key)
    if (known !== undefined) return known
    if (this.#origins.size >= this.#services.limits.originsPerVm) this.#makeRoom()
    const origin = new Origin({ host, port, secure }, this.#services, this.#passing)
    this.#origins.set(key, origin)
    return origin
  }

  /** Closes the connections to hosts that have not been used for a while. */
  closeIdle (nowMs: number): void {
    for (const [key, origin] of this.#origins) if (origin.active === 0 && nowMs - origin.usedMs > this.#services.limits.originIdleMs) this.#drop(key, origin)
  }

  /** Other addresses may be dialled from now on. */
  vetAnew (): void {
    for (const origin of this.#origins.values()) origin.vetAnew()
  }

  close (): void {
    for (const [key, origin] of this.#origins) this.#drop(key, origin)
  }

  #makeRoom (): void {
    const idle = [...this.#origins].filter(([, origin]) => origin.active === 0).sort(([, a], [, b]) => a.usedMs - b.usedMs)
    const [oldest] = idle
    if (oldest !== undefined) this.#drop(...oldest)
  }

  #drop (key: string, origin: Origin): void {
    this.#origins.delete(key)
    origin.close()
  }
}
