// A worker's VMs in the enforced revision, by address. Without a revision there are none, and so no way out.
import { CompiledPolicy } from '../gate/host-rules.ts'
import { holds, rangeList } from '../contract/ranges.ts'
import type { WorkerChange, WorkerRevision } from './revision.ts'
import { forEachApart } from './each.ts'
import type { TracingPolicy, VmPolicy } from '../contract/control.ts'
import type { Vm } from './vm.ts'

/** Thrown when something that a revision takes away did not end. */
class StillOpen extends Error {
  override readonly name = 'StillOpen'
}

/** Thrown for a difference from another revision than the one enforced here. */
class MissedRevision extends Error {
  override readonly name = 'MissedRevision'
}

export class VmTable {
  readonly #byAddress = new Map<string, Vm>()
  #revision: number | undefined
  #barred = new Set<string>()
  #denied = rangeList([])
  #deniedText = ''
  #tracing: TracingPolicy | undefined
  /** VMs of earlier revisions that have not ended completely */
  readonly #leaving = new Set<Vm>()
  readonly #createVm: (policy: CompiledPolicy) => Vm
  readonly #onFault: (error: unknown) => void

  /** @param onFault gets exceptions of connections that are closed because of another policy */
  constructor (createVm: (policy: CompiledPolicy) => Vm, onFault: (error: unknown) => void) {
    this.#createVm = createVm
    this.#onFault = onFault
  }

  all (): IterableIterator<Vm> {
    return this.#byAddress.values()
  }

  find (address: string): Vm | undefined {
    return this.#byAddress.get(address)
  }

  /** Whether guests may not reach the address: it is a VM's, or the revision denies it. */
  bars (address: string): boolean {
    return this.#barred.has(address) || holds(this.#denied, address)
  }

  /**
   * Enforces a checked revision. It does so within one turn of the event loop, and requests read their VM's policy when they write their header,
   * so no header with an older policy is written after this has returned. Applying the same revision again ends what is left of earlier ones.
   * @throws StillOpen when something of a removed VM did not end
   */
  apply ({ revision, denied, addresses, tracing, vms }: WorkerRevision): void {
    this.#tracing = tracing
    const kept = new Set(vms.map(({ address }) => address))
    this.#take(revision, denied, vms, [...this.#byAddress.keys()].filter(address => !kept.has(address)), () => { this.#barred = new Set(addresses) })
  }

  /**
   * The same for a difference from the enforced revision. VMs that it does not name keep their policy.
   * @throws MissedRevision StillOpen
   */
  change ({ base, revision, denied, addresses, freed, vms, gone }: WorkerChange): void {
    if (base !== this.#revision) throw new MissedRevision(`a difference to revision ${base} cannot be enforced on ${this.#revision ?? 'none'}`)
    this.#take(revision, denied, vms, gone, () => {
      for (const address of freed) this.#barred.delete(address)
      for (const address of addresses) this.#barred.add(address)
    })
  }

  #take (revision: number, denied: readonly string[] | undefined, vms: readonly VmPolicy[], gone: readonly string[], bar: () => void): void {
    // Everything that can throw comes first: until here nothing has changed.
    const ranges = denied === undefined ? undefined : rangeList(denied)
    const policies = vms.map(source => new CompiledPolicy(source, revision, this.#tracing))
    const made = policies.map(policy => this.#isKnown(policy) ? undefined : this.#createVm(policy))
    for (const [index, policy] of policies.entries()) {
      const { address } = policy.source
      const before = this.#byAddress.get(address)
      const vm = made[index]
      if (vm === undefined) {
        before?.enforce(policy)
        continue
      }
      if (before !== undefined) this.#leaving.add(before)
      this.#byAddress.set(address, vm)
    }
    for (const address of gone) {
      const before = this.#byAddress.get(address)
      if (before !== undefined) this.#leaving.add(before)
      this.#byAddress.delete(address)
    }
    bar()
    this.#revision = revision
    if (ranges !== undefined) this.#deny(ranges, denied?.join() ?? '')
    this.#endLeaving()
  }

  #isKnown ({ source: { id, address, epoch } }: CompiledPolicy): boolean {
    const known = this.#byAddress.get(address)
    return known !== undefined && known.id === id && known.epoch === epoch
  }

  #deny (ranges: ReturnType<typeof rangeList>, text: string): void {
    this.#denied = ranges
    if (text === this.#deniedText) return
    this.#deniedText = text
    // Open connections were vetted by other rules.
    forEachApart(this.#byAddress.values(), vm => vm.origins.vetAnew(), this.#onFault)
  }

  /** Ends all leaving VMs, each time: a revision is not in force as long as a VM that it does not name can still do something. */
  #endLeaving (): void {
    for (const vm of this.#leaving) {
      vm.end('policy_changed')
      if (!vm.lingers) this.#leaving.delete(vm)
    }
    if (this.#leaving.size > 0) throw new StillOpen(`of ${this.#leaving.size} VMs that are gone something is still open`)
  }
}
