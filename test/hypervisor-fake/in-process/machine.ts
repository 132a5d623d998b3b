// A fake VM without a process: what its VMM would be, and what tests see of it. A subclass is its guest.
import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { MemoryImage, VmDisk, VmDiskRange, VmHandle, VmSpec, VmState } from '../../../core/library/hypervisor.ts'

export abstract class Machine {
  readonly spec: VmSpec
  readonly handle: VmHandle
  state: VmState = { status: 'running' }
  /** where it writes now */
  readonly files: { output: string, vmm: string }
  readonly rotations: string[] = []
  /** paths, as they are now */
  readonly disks: Map<string, string>
  /** those of them that were or can be plugged */
  readonly plugged: Map<string, VmDisk>
  /** disks whose changes are noted */
  readonly tracked = new Set<string>()
  /** which record of them is the one in use */
  readonly records = new Map<string, symbol>()
  /** what it says was written to them */
  changes: readonly VmDiskRange[] = []
  /** what the guest was asked to make do with */
  aims: number[] = []
  /** what it has; follows what it was asked for unless it is stubborn */
  memory: number
  stubborn = false
  /** what the disks were limited to while it ran; undefined: never */
  diskLimit: number | undefined
  released = 0
  /** whether its guest has not taken a step since an image was made of it */
  isCaptured = false
  /** device and number of the file that its memory is on; undefined: none */
  memoryInode: string | undefined
  /** where memory was copied ahead */
  readonly ahead = new Set<string>()
  /** what it was started on */
  restoredFrom: { image: MemoryImage, state: string, memory: string } | undefined
  /** disks whose sizes the guest was told of then */
  otherDisks: readonly string[] = []
  /** tells its views, and the guest's links: `state` */
  readonly bus = new EventEmitter().setMaxListeners(0)
  readonly #streams = new Map<number, Duplex>()

  constructor (spec: VmSpec, handle: VmHandle) {
    this.spec = spec
    this.handle = handle
    this.memory = spec.memoryBytes
    this.files = { output: spec.files.output, vmm: spec.files.vmm }
    this.disks = new Map(spec.disks.map(({ id, path }) => [id, path]))
    this.plugged = new Map(spec.disks.filter(({ unit }) => unit !== undefined).map((disk) => [disk.id, disk]))
  }

  /** Opens the stream to the guest, which ends the one before it. @param server the number of the one that asks: a killed one of a test still stands somewhere, and its stream is nobody's concern */
  connect (server: number): Duplex {
    this.#streams.get(server)?.destroy()
    const stream = this.open()
    this.#streams.set(server, stream)
    return stream
  }

  /** A change is told; nothing comes after `gone`. */
  set (state: VmState): void {
    if (this.state.status === 'gone' || (this.state.status === state.status && this.state.reason === state.reason)) return
    this.state = state
    this.bus.emit('state', state)
    if (state.status === 'gone') for (const stream of this.#streams.values()) stream.destroy()
  }

  /** A way to the guest. */
  abstract open (): Duplex
  /** The guest's first steps after a boot. */
  abstract boot (): Promise<void>
  /** What a state file holds. */
  abstract save (): string
  /** Writes what the guest's memory holds. @param isOwn whether that is the file that the VM keeps it in; else it is there, and empty or copied ahead */
  abstract saveMemory (path: string, isOwn: boolean): Promise<void>
  /** Makes the guest what two files hold. Throws `RestoreFailed` when they make no sense. @returns what they say, for tests */
  abstract load (statePath: string, memoryPath: string): Promise<{ state: string, memory: string }>
  /** The guest takes a step after it was captured or restored. */
  abstract goOn (): Promise<void>
  /** Throws when the guest uses the disk. */
  checkReleased (_id: string): void {}
}
