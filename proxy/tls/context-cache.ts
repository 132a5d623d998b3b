// Certificates that are ready for handshakes, bounded per VM and altogether: a VM that asks for many names does not push out those of others.
import { createSecureContext, type SecureContext } from 'node:tls'
import type { Authority } from './authority.ts'
import type { Counters } from '../log/counters.ts'

export interface ContextLimits {
  readonly perVm: number
  readonly total: number
}

interface Ready {
  readonly context: SecureContext
  /** when it was made, by the wall clock */
  readonly issuedMs: number
  readonly lifetimeMs: number
}

const LIFETIME_MS = 60 * 60 * 1000
/** A clock that is behind the time of issue by more was ahead then, and certificates of that time are not valid yet. */
const TOLERANCE_MS = 60 * 1000

export class ContextCache {
  readonly #authority: Authority
  readonly #limits: ContextLimits
  readonly #counters: Counters
  readonly #byVm = new Map<object, Map<string, Ready>>()
  #size = 0

  constructor (authority: Authority, limits: ContextLimits, counters: Counters) {
    this.#authority = authority
    this.#limits = limits
    this.#counters = counters
  }

  get size (): number {
    return this.#size
  }

  /** The context for a host, if it is ready. */
  find (vm: object, host: string): SecureContext | undefined {
    const own = this.#byVm.get(vm)
    const ready = own?.get(host)
    if (own === undefined || ready === undefined) return undefined
    own.delete(host)
    const ageMs = Date.now() - ready.issuedMs
    if (ageMs > ready.lifetimeMs || ageMs < -TOLERANCE_MS) {
      this.#size--
      return undefined
    }
    // Removed and inserted again: the order of a Map is then the order of use.
    own.set(host, ready)
    return ready.context
  }

  /** Makes a certificate for a host and keeps it ready. */
  create (vm: object, host: string): SecureContext {
    const leaf = this.#authority.issue(host)
    const context = createSecureContext({ cert: leaf.certificatePem, key: leaf.keyPem, minVersion: 'TLSv1.2' })
    this.#counters.certificates++
    const own = this.#byVm.get(vm) ?? new Map<string, Ready>()
    this.#byVm.set(vm, own)
    const issuedMs = Date.now()
    own.set(host, { context, issuedMs, lifetimeMs: Math.min(LIFETIME_MS, leaf.notAfterMs - issuedMs) })
    this.#size++
    if (own.size > this.#limits.perVm) this.#dropOldest(own)
    if (this.#size > this.#limits.total) this.#dropOldest(this.#largest())
    return context
  }

  /** Drops everything that was made for a VM. */
  forget (vm: object): void {
    this.#size -= this.#byVm.get(vm)?.size ?? 0
    this.#byVm.delete(vm)
  }

  #largest (): Map<string, Ready> {
    return [...this.#byVm.values()].reduce((largest, own) => own.size > largest.size ? own : largest)
  }

  #dropOldest (own: Map<string, Ready>): void {
    const oldest = own.keys().next()
    if (oldest.done !== true && own.delete(oldest.value)) this.#size--
  }
}
