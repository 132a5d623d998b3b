// What QEMU offers other plugins: drivers for further boards. Types only.
import type { HypervisorDriver, VmSpec } from '../../core/library/hypervisor.ts'

/** A device's place on a board, or the index of a disk without a unit. */
export type Place = 'ports' | 'entropy' | 'network' | 'balloon' | 'volumes' | number

/** A board of QEMU for VMs, as far as boards differ: where devices sit, and what is missing. All of it is part of what a memory image must match. */
export interface Board {
  /** name of the driver, in the slot, in handles and memory images */
  readonly driver: string
  /** QEMU's name of it, as `-machine help` lists it */
  readonly name: string
  /** for `-machine`, after the name: `acpi=on,usb=off` */
  readonly options: string
  /** further arguments of QEMU */
  readonly arguments: readonly string[]
  /** for the guest's kernel, in addition to those of every VM with that accelerator */
  readonly kernelArguments: Readonly<Record<'kvm' | 'tcg', readonly string[]>>
  /** Why it cannot be used on this host at all, in one sentence; undefined when it can. */
  refusal (accelerator: 'kvm' | 'tcg'): string | undefined
  readonly features: NonNullable<HypervisorDriver['features']>
  /** of a virtio device, with the bus: `virtio-blk-pci` for `virtio-blk` */
  model (kind: string): string
  /** where that device sits: properties of `-device` */
  place (place: Place): string
  /** most disks without a unit, given a number of the host's devices */
  maxDisks (hostDevices: number): number
  /** Why the board cannot do what the specification asks for, in words that follow "it"; undefined when it can. */
  objection (spec: VmSpec): string | undefined
}

export interface QemuService {
  /** A driver for another board, with this plugin's settings: which QEMU, how instructions run, times. */
  driver (board: Board): HypervisorDriver
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly qemu: QemuService | undefined
  }
}
