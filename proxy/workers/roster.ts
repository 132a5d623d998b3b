// The VMs of the enforced revision as the parent knows them: which VM has which address, without credentials.
import type { VmPolicy } from '../contract/control.ts'
import type { Limits } from '../config/schema.ts'
import { Bucket } from '../gate/bucket.ts'

export class Guest {
  readonly id: string
  readonly address: string
  readonly epoch: string
  readonly dnsQueries: Bucket
  /** limits the log lines about reached limits, so that a VM that only runs into them does not fill the audit log */
  readonly limitLines = new Bucket(1)
  mode: VmPolicy['mode']
  /** whether its traffic kept ending workers: it then has no way out until its next epoch */
  isCutOff = false

  constructor ({ id, address, epoch, mode }: VmPolicy, limits: Limits) {
    this.id = id
    this.address = address
    this.epoch = epoch
    this.mode = mode
    this.dnsQueries = new Bucket(limits.dnsPerSecond)
  }
}

export class Roster {
  #guests = new Map<string, Guest>()
  readonly #limits: Limits
  revision: number | null = null

  constructor (limits: Limits) {
    this.#limits = limits
  }

  get size (): number {
    return this.#guests.size
  }

  all (): IterableIterator<Guest> {
    return this.#guests.values()
  }

  find (address: string): Guest | undefined {
    return this.#guests.get(address)
  }

  replace (revision: number, vms: readonly VmPolicy[]): void {
    this.revision = revision
    this.#guests = new Map(vms.map(vm => [vm.address, this.#guestOf(vm)]))
  }

  /** Applies a difference: these VMs have another policy, and these addresses have no VM any more. */
  change (revision: number, vms: readonly VmPolicy[], freed: Iterable<string>): void {
    this.revision = revision
    for (const address of freed) this.#guests.delete(address)
    for (const vm of vms) this.#guests.set(vm.address, this.#guestOf(vm))
  }

  #guestOf (vm: VmPolicy): Guest {
    const known = this.#guests.get(vm.address)
    if (known?.id !== vm.id || known.epoch !== vm.epoch) return new Guest(vm, this.#limits)
    known.mode = vm.mode
    return known
  }
}
