// A spare VM: the VM, what it holds, and how all of it is taken back.
import type { Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { Undo } from '../../../core/undo.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceRecord } from '../model/record.ts'
import type { Hidden, Spare, SpareDisks } from './contract.ts'

/** A VM that is to be a spare one, with a link to its guest. */
export interface SpareParts {
  readonly key: string
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly link: GuestLink
  readonly hidden: Hidden
  readonly disks?: SpareDisks
}

export class SpareVm implements Spare {
  readonly key: string
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly link: GuestLink
  readonly hidden: Hidden
  readonly disks: SpareDisks | undefined
  readonly #context: BaseContext
  readonly #undo: Undo
  #isBroken = false

  /** @param undo ends the VM and takes everything back */
  constructor (context: BaseContext, { key, vm, imaging, link, hidden, disks }: SpareParts, undo: Undo) {
    this.#context = context
    this.key = key
    this.vm = vm
    this.imaging = imaging
    this.link = link
    this.hidden = hidden
    this.disks = disks
    this.#undo = undo
    this.link.closed.then(() => { this.#isBroken = true }, () => {})
  }

  get record (): InstanceRecord { return this.hidden.record }

  get isGood (): boolean { return !this.#isBroken && this.vm.state.status === 'paused' }

  async end (): Promise<void> {
    for (const failure of await this.#undo.run()) this.#context.log.error({ err: failure, vm: this.record.id }, 'a spare VM could not be ended wholly')
  }

  handOver (): void {
    this.#undo.drop()
    this.#context.hidden.delete(this.record)
  }
}

/** Adds the end of a VM of the server's own, and gives its imaging. */
export function endWith (undo: Undo, vm: Vm): VmImaging {
  undo.add(async () => {
    await vm.kill()
    vm.release()
  })
  if (vm.imaging === undefined) throw new Error('the driver makes no memory images of its VMs')
  return vm.imaging
}

/** Does the work of making a spare VM; leaves nothing behind when it rejects. */
export async function orTakeBack<T> (context: BaseContext, undo: Undo, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'a step of a failed spare VM could not be taken back')
    throw error
  }
}
