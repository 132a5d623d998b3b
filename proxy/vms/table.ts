// All VMs of the revision that is enforced, by their address. Without a revision there are none, and so no way out.
import type { PolicyRevision } from '../contract.ts'
import { CompiledPolicy } from '../policy/host-rules.ts'
import { holds, rangeList } from '../resolve/ranges.ts'
import type { Vm } from './vm.ts'

/** Thrown when a revision is older than the one that is enforced. */
export class StaleRevision extends Error {
  override readonly name = 'StaleRevision'
}

export class VmTable {
  #byAddress = new Map<string, Vm>()
  #revision: number | null = null
  #denied = rangeList([])
  #deniedText = ''
  readonly #createVm: (policy: CompiledPolicy) => Vm

  constructor (createVm: (policy: CompiledPolicy) => Vm) {
    this.#createVm = createVm
  }

  get revision (): number | null {
    return this.#revision
  }

  get size (): number {
    return this.#byAddress.size
  }

  all (): IterableIterator<Vm> {
    return this.#byAddress.values()
  }

  find (address: string): Vm | undefined {
    return this.#byAddress.get(address)
  }

  has (address: string): boolean {
    return this.#byAddress.has(address)
  }

  /** Whether no guest may reach the address: it is a VM's, or the revision says so. */
  bars (address: string): boolean {
    return this.#byAddress.has(address) || holds(this.#denied, address)
  }

  /**
   * Enforces a revision that was checked. It happens within one turn of the event loop, and requests read their VM's policy when they write their header,
   * so no header is written with an older one once this has returned.
   */
  apply (revision: PolicyRevision): void {
    if (this.#revision !== null && revision.revision < this.#revision) throw new StaleRevision(`revision ${this.#revision} is enforced already`)
    const denied = rangeList(revision.denied ?? [])
    const deniedText = (revision.denied ?? []).join()
    const next = new Map<string, Vm>()
    for (const source of revision.vms) {
      const policy = new CompiledPolicy(source, revision.revision)
      const known = this.#byAddress.get(source.address)
      const same = known !== undefined && known.id === source.id && known.epoch === source.epoch
      if (same) known.policy = policy
      next.set(source.address, same ? known : this.#createVm(policy))
    }
    const previous = this.#byAddress
    this.#byAddress = next
    this.#denied = denied
    this.#revision = revision.revision
    if (deniedText !== this.#deniedText) {
      this.#deniedText = deniedText
      // What is open was vetted by other rules. A connection in use speaks with whoever had the address before, and stays that one's.
      for (const vm of next.values()) vm.origins.closeIdle(Number.POSITIVE_INFINITY)
    }
    for (const [address, vm] of previous) if (next.get(address) !== vm) vm.end('policy_changed')
  }
}
