// All VMs of the revision that is enforced, as the parent knows them: who has which address, without their credentials.
import type { VmPolicy } from '../contract/control.ts'
import type { Limits } from '../config/schema.ts'
import { Bucket } from '../gate/bucket.ts'

export class Guest {
  readonly id: string
  readonly address: string
  readonly epoch: string
  readonly dnsQueries: Bucket
  /** keeps the audit log readable when a VM does nothing but run into a limit */
  readonly limitLines = new Bucket(1)
  mode: VmPolicy['mode']
  /** whether its traffic keeps ending workers: it has no way out until it begins a new epoch */
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

  /** What differs from before: these have another policy, and these addresses have no VM any more. */
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
