// The types of spare VMs: paused VMs of the server's own that are ready to become instances.
import type { Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord } from '../model/record.ts'
import type { Connection } from '../parts/connection.ts'

/** A VM of the server's own, without its VMM: a row, a folder and parts. */
export interface Hidden {
  readonly record: InstanceRecord
  readonly paths: InstancePaths
  /** what the VM is connected to; an instance that the VM becomes keeps it */
  readonly connection: Connection
  /** Removes files, parts and row. The VM must have ended. */
  remove (): Promise<void>
}

/** The disks of a VM that was made for no image yet. */
export interface SpareDisks {
  /** Gives the VM the disks of an instance. Can be repeated at no cost. */
  put (rootfs: string, overlayBytes: number): Promise<void>
}

/** A paused VM of the server's own, ready to become an instance. */
export interface Spare {
  /** of what it was made of */
  readonly key: string
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly link: GuestLink
  readonly hidden: Hidden
  readonly record: InstanceRecord
  /** absent: the VM has all of its disks */
  readonly disks: SpareDisks | undefined
  /** Whether it can be used: the VM is paused, and the link to its guest is open. */
  readonly isGood: boolean
  /** Ends the VM and removes everything that it has. Never rejects. */
  end (): Promise<void>
  /** The VM is an instance from now on: ending it is up to its new owner. */
  handOver (): void
}

/** What spare VMs can be made of. */
export interface SpareSource {
  readonly key: string
  /** of one VM */
  readonly memoryBytes: number
  /** What the disk of one VM takes from the start; absent: nothing worth speaking of. */
  diskBytes? (): Promise<number>
  /** Makes one. Undefined when none can be made now. Leaves nothing behind when it rejects. */
  make (signal: AbortSignal): Promise<Spare | undefined>
}

export interface Spares {
  /** Nothing is made in the background while `work` goes on. */
  during<T> (work: () => Promise<T>): Promise<T>
  /** Notes that an instance was made of something that spare VMs can be made of. @param isMet whether it was made of a spare VM */
  note (key: string, isMet: boolean): void
  /** Makes those that are missing, in the background, so that the next instance of this kind comes up quickly. */
  want (source: SpareSource): void
  /** Takes a spare VM out of the pool: it is the caller's from now on. */
  take (key: string): Spare | undefined
  /** Takes back a spare VM that nothing has happened to. */
  giveBack (spare: Spare): void
  /** Ends those of this key, and the making of others: what they are made of goes away. Nobody has to wait. Never rejects. */
  forget (key: string): Promise<void>
  /** Gives up a VM of the server's own, so that an instance can have what it holds. False when there is none. */
  giveUpOne (): Promise<boolean>
  count (key?: string): number
  /** Ends the work in the background, and all spare VMs. */
  close (): Promise<void>
}
