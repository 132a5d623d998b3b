// What a fake driver without processes is told by its host, which outlives it: its VMs, what they can do, and what happens at each step.
import type { HypervisorDriver, VmHandle, VmSpec } from '../../../core/library/hypervisor.ts'
import type { DiskLimits } from '../image.ts'
import type { Machine } from './machine.ts'

/** before, and with a participle after, what the driver does */
export type DriverStep = 'launch' | 'launched' | 'replace' | 'replaced' | 'pause' | 'paused' | 'track' | 'tracked' | 'changes' | 'untrack' | 'copy-ahead' | 'copied-ahead' | 'capture' | 'captured' | 'resume' | 'restore' | 'loaded' | 'restored' | 'kill' | 'killed' | 'plug-disk' | 'disk-plugged' | 'unplug-disk' | 'disk-unplugged' | 'aim' | 'rotate'

export interface Host<M extends Machine> {
  /** name of the driver */
  readonly name: string
  readonly features: NonNullable<HypervisorDriver['features']>
  /** of the VMM; an image of another one is of no use */
  readonly vmmVersion: string
  readonly vms: M[]
  /** Counts the servers that there were. A test holds a killed one at a step, so it has no part in the streams of the next, nor in their end. */
  readonly servers: number
  readonly replacesDisks: boolean
  readonly hasBalloons: boolean
  readonly makesImages: boolean
  readonly imagingRefusal: string | undefined
  /** absent: changeable */
  readonly diskLimits?: DiskLimits
  /** whether VMs can share a memory file, and be saved as differences from it */
  readonly sharesMemory?: boolean
  /** why no VM can be taken over, as of a VMM that lives and cannot be reached */
  readonly attachError?: Error | undefined
  /** Whether memory files are as large as the memory, as they are with every other driver. Tests that compare and pack them want small ones. */
  readonly hasWholeMemory: boolean
  makeVm (spec: VmSpec, handle: VmHandle): M
  /** Called at each step, before anything of it is done; what it throws is the failure of the step. @param signal of a capture */
  step (step: DriverStep, vm: M | undefined, signal?: AbortSignal): Promise<void>
  /** The guest's processors are about to run. */
  runs? (vm: M): void
  /** whether a path that is not there counts as a file that the VMM can open */
  isImaginary? (path: string): boolean
}
