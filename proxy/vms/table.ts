// The VMs of a worker in the revision that is enforced, by their address. Without a revision there are none, and so no way out.
import { CompiledPolicy } from '../gate/host-rules.ts'
import { holds, rangeList } from '../contract/ranges.ts'
import type { WorkerChange, WorkerRevision } from './revision.ts'
import { forEachApart } from './each.ts'
import type { TracingPolicy, VmPolicy } from '../contract/control.ts'
import type { Vm } from './vm.ts'

/** Thrown when what a revision takes away could not be taken away. */
export class StillOpen extends Error {
  override readonly name = 'StillOpen'
}

/** Thrown when a difference is one to another revision than the one that is enforced here. */
export class MissedRevision extends Error {
  override readonly name = 'MissedRevision'
}

export class VmTable {
  readonly #byAddress = new Map<string, Vm>()
  #revision: number | undefined
  #barred = new Set<string>()
  #denied = rangeList([])
  #deniedText = ''
  #tracing: TracingPolicy | undefined
  /** VMs of earlier revisions of which something is left */
  readonly #leaving = new Set<Vm>()
  readonly #createVm: (policy: CompiledPolicy) => Vm
  readonly #onFault: (error: unknown) => void

  /** @param onFault hears of what a connection throws that is closed because of another policy */
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

  /** Whether no guest may reach the address: it is a VM's, or the revision says so. */
  bars (address: string): boolean {
    return this.#barred.has(address) || holds(this.#denied, address)
  }

  /**
   * Enforces a revision that was checked. It happens within one turn of the event loop, and requests read their VM's policy when they write their header,
   * so no header is written with an older one once this has returned. The same revision again does what is left of it.
   * @throws StillOpen when something of a VM that is gone did not end
   */
  apply ({ revision, denied, addresses, tracing, vms }: WorkerRevision): void {
    this.#tracing = tracing
    const kept = new Set(vms.map(({ address }) => address))
    this.#take(revision, denied, vms, [...this.#byAddress.keys()].filter(address => !kept.has(address)), () => { this.#barred = new Set(addresses) })
  }

  /**
   * The same for what differs from the revision that is enforced. The others keep the policy that they have.
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
    // What can throw comes first: until here nothing has changed.
    const ranges = denied === undefined ? undefined : rangeList(denied)
    const policies = vms.map(source => new CompiledPolicy(source, revision, this.#tracing))
    const made = policies.map(policy => this.#isKnown(policy) ? undefined : this.#createVm(policy))
    for (const [index, policy] of policies.entries()) {
      const { address } = policy.source
      const before = this.#byAddress.get(address)
      const vm = made[index]
      if (vm === undefined) {
        if (before !== undefined) before.policy = policy
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
    // What is open was vetted by other rules. A connection in use speaks with whoever had the address before, and stays that one's.
    forEachApart(this.#byAddress.values(), vm => vm.origins.closeIdle(Number.POSITIVE_INFINITY), this.#onFault)
  }

  /** All of them, each time: a revision is not in force as long as one that it does not name can still do something. */
  #endLeaving (): void {
    for (const vm of this.#leaving) {
      vm.end('policy_changed')
      if (!vm.lingers) this.#leaving.delete(vm)
    }
    if (this.#leaving.size > 0) throw new StillOpen(`of ${this.#leaving.size} VMs that are gone something is still open`)
  }
}
