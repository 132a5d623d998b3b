// The types of kept VMs.
import type { Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { StoredImage } from '../memory-image/files.ts'
import type { InstanceRecord } from '../model/record.ts'

export const END_REASONS = ['time', 'count', 'size', 'room', 'pressure', 'changed', 'unfit', 'died', 'closed'] as const
/**
 * Why a kept VM was ended and not restored. `size`, `count` and `time`: the configuration allows no more; `room`: somebody claimed its memory or place; `pressure`: the host has little memory left; `changed`: something
 * was done to its instance; `unfit`: it was not what a restore needs; `died`: it ended by itself; `closed`: the server ends.
 */
export type EndReason = typeof END_REASONS[number]

/** The paused VM of an instance in standby, whose image was made of it. */
export interface Kept {
  /** as it is after the standby */
  readonly record: InstanceRecord
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly image: StoredImage
  /** of its guest */
  readonly memoryBytes: number
}

export interface KeptVms {
  /** Whether a VM with so much memory is kept at all. */
  takes (memoryBytes: number): boolean
  /** Keeps the VM until it is taken or must go. */
  put (kept: Kept): void
  find (instanceId: string): Kept | undefined
  /** Takes the VM out: it is the caller's from now on. */
  take (instanceId: string): Kept | undefined
  /** Ends a VM that the caller has taken. Never rejects. */
  giveUp (kept: Kept, reason: EndReason): Promise<void>
  /** Resolves when the instance has no kept VM, nor one that is being ended. Never rejects. */
  end (instanceId: string, reason: EndReason): Promise<void>
  /** Ends the one that has been kept for longest. False when there is none. */
  endOldest (reason: EndReason): Promise<boolean>
  endAll (reason: EndReason): Promise<void>
  /** Ends the oldest ones until the others have no more memory than this. */
  shrinkTo (memoryBytes: number, reason: EndReason): Promise<void>
  count (): { readonly vms: number, readonly memoryBytes: number }
  /** Ends all, and every one that is put in later. */
  close (): Promise<void>
}
