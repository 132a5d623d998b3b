// The VMs of a worker in the revision that is enforced, by their address. Without a revision there are none, and so no way out.
import { CompiledPolicy } from '../gate/host-rules.ts'
import { holds, rangeList } from '../contract/ranges.ts'
import type { WorkerRevision } from './revision.ts'
import { forEachApart } from './each.ts'
import type { Vm } from './vm.ts'

/** Thrown when what a revision takes away could not be taken away. */
export class StillOpen extends Error {
  override readonly name = 'StillOpen'
}

export class VmTable {
  #byAddress = new Map<string, Vm>()
  #barred: ReadonlySet<string> = new Set()
  #denied = rangeList([])
  #deniedText = ''
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
  apply (revision: WorkerRevision): void {
    const denied = rangeList(revision.denied)
    const deniedText = revision.denied.join()
    const next = new Map<string, Vm>()
    for (const source of revision.vms) {
      const policy = new CompiledPolicy(source, revision.revision, revision.tracing)
      const known = this.#byAddress.get(source.address)
      const same = known !== undefined && known.id === source.id && known.epoch === source.epoch
      if (same) known.policy = policy
      next.set(source.address, same ? known : this.#createVm(policy))
    }
    const previous = this.#byAddress
    this.#byAddress = next
    this.#denied = denied
    this.#barred = new Set(revision.addresses)
    if (deniedText !== this.#deniedText) {
      this.#deniedText = deniedText
      // What is open was vetted by other rules. A connection in use speaks with whoever had the address before, and stays that one's.
      forEachApart(next.values(), vm => vm.origins.closeIdle(Number.POSITIVE_INFINITY), this.#onFault)
    }
    for (const [address, vm] of previous) if (next.get(address) !== vm) this.#leaving.add(vm)
    this.#endLeaving()
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
