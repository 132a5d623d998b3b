// The enforced policy as the server sent it: a whole revision and later differences. A difference is applied only to exactly the revision that it was made from.
import type { PolicyChange, PolicyRevision, TracingPolicy, VmPolicy } from '../contract/control.ts'
import { MAX_VMS, PolicyFault } from './policy-fault.ts'

/** Thrown when a revision is older than the one that is enforced. */
export class StaleRevision extends Error {
  override readonly name = 'StaleRevision'
}

/** Thrown for a difference from another revision: the server has to send the whole one. */
export class OtherBase extends Error {
  override readonly name = 'OtherBase'
}

/** The addresses that a difference affects. */
export interface Touched {
  /** addresses that had a VM or have one now, and whose policy has changed */
  readonly addresses: ReadonlySet<string>
  /** addresses that have no VM any more */
  readonly freed: readonly string[]
}

export class PolicyBook {
  #revision: number | null = null
  #denied: readonly string[] = []
  #tracing: TracingPolicy | undefined
  #vms = new Map<string, VmPolicy>()
  /** address → id of its VM */
  #holders = new Map<string, string>()

  get revision (): number | null { return this.#revision }

  get denied (): readonly string[] { return this.#denied }

  /** from the last whole revision */
  get tracing (): TracingPolicy | undefined { return this.#tracing }

  get vms (): Iterable<VmPolicy> { return this.#vms.values() }

  get addresses (): string[] { return [...this.#holders.keys()] }

  /** @throws StaleRevision */
  replace ({ revision, denied = [], tracing, vms }: PolicyRevision): void {
    if (this.#revision !== null && revision < this.#revision) throw this.#stale(this.#revision)
    this.#revision = revision
    this.#denied = denied
    this.#tracing = tracing
    this.#vms = new Map(vms.map(vm => [vm.id, vm]))
    this.#holders = new Map(vms.map(({ id, address }) => [address, id]))
  }

  /** Applies all of the difference or nothing. @throws OtherBase StaleRevision PolicyFault */
  change ({ base, revision, denied, vms, gone }: PolicyChange): Touched {
    this.#check({ base, revision, vms, gone })
    const addresses = new Set<string>()
    for (const id of [...gone, ...vms.map(vm => vm.id)]) {
      const before = this.#vms.get(id)
      if (before === undefined) continue
      addresses.add(before.address)
      this.#vms.delete(id)
      this.#holders.delete(before.address)
    }
    for (const vm of vms) {
      addresses.add(vm.address)
      this.#vms.set(vm.id, vm)
      this.#holders.set(vm.address, vm.id)
    }
    this.#revision = revision
    this.#denied = denied ?? this.#denied
    return { addresses, freed: [...addresses].filter(address => !this.#holders.has(address)) }
  }

  #check ({ base, revision, vms, gone }: PolicyChange): void {
    if (this.#revision === null) throw new OtherBase('no revision is enforced that it could differ from')
    if (revision < this.#revision) throw this.#stale(this.#revision)
    if (base !== this.#revision) throw new OtherBase(`revision ${this.#revision} is enforced, and not ${base}`)
    const unknown = gone.find(id => !this.#vms.has(id))
    if (unknown !== undefined) throw new OtherBase('a VM is to go that is in no policy here')
    const given = new Set([...gone, ...vms.map(({ id }) => id)])
    for (const { address } of vms) {
      const holder = this.#holders.get(address)
      if (holder !== undefined && !given.has(holder)) throw new OtherBase('a VM is to get an address that another one has here')
    }
    const added = vms.filter(({ id }) => !this.#vms.has(id)).length
    if (this.#vms.size - gone.length + added > MAX_VMS) throw new PolicyFault('vms', `more than ${MAX_VMS} would have a policy`)
  }

  #stale (enforced: number): StaleRevision {
    return new StaleRevision(`revision ${enforced} is enforced already`)
  }
}
