// One VM of a scripted host.
import { EventEmitter } from 'node:events'
import { appendFile, writeFile } from 'node:fs/promises'
import { Duplex } from 'node:stream'
import type { MemoryImage, VmDiskRange, VmHandle, VmSpec, VmState } from '../../../core/library/hypervisor.ts'
import type { ExecSpec, GuestExit, GuestIdentity, GuestMount, GuestPhase, PutSpec, Workload } from '../../../plugins/guest/contract.ts'
import type { EgressStep } from './scripted-egress.ts'
import type { ScriptedExec } from './scripted-exec.ts'
import type { NetworkStep } from './scripted-network.ts'

/** before, and with a participle after, what driver and guest do */
export type ImagingStep = 'launch' | 'launched' | 'rehearse' | 'rehearsed' | 'replace' | 'replaced' | 'pause' | 'paused' | 'flush' | 'flushed' | 'track' | 'tracked' | 'changes' | 'untrack' | 'copy-ahead' | 'copied-ahead' | 'sleep' | 'slept' | 'wake' | 'woken' | 'capture' | 'captured' | 'resume' | 'restore' | 'loaded' | 'restored' | 'kill' | 'killed' | 'plug-disk' | 'disk-plugged' | 'unplug-disk' | 'disk-unplugged' | 'mount' | 'mounted' | 'unmount' | 'unmounted' | 'aim' | 'shutdown' | NetworkStep | EgressStep

/** One scripted VM: its VMM, its guest, and what the test sees of it. */
export class ScriptedVm {
  readonly spec: VmSpec
  readonly handle: VmHandle
  state: VmState = { status: 'running' }
  workload: Workload | undefined
  phase: GuestPhase = 'waiting'
  readonly shutdowns: number[] = []
  readonly execs: { spec: ExecSpec, session: ScriptedExec }[] = []
  readonly puts: { spec: PutSpec, bytes: Buffer }[] = []
  readonly rotations: string[] = []
  /** ports that the host listens on, and who takes their connections */
  readonly ports = new Map<number, (connection: Duplex) => void>()
  /** as they are now */
  readonly disks: Map<string, string>
  /** of the guest, by device */
  readonly mounts = new Map<string, GuestMount>()
  /** devices of mounts that something in the guest uses */
  readonly busy = new Set<string>()
  /** disks whose changes are noted */
  readonly tracked = new Set<string>()
  /** what it says was written to them */
  changes: readonly VmDiskRange[] = []
  rehearsals = 0
  /** what the guest was asked to make do with */
  aims: number[] = []
  /** what it has; follows what it was asked for unless it is stubborn */
  memory: number
  stubborn = false
  /** what the disks were limited to while it ran; undefined: never */
  diskLimit: number | undefined
  /** what the guest was told at each waking */
  readonly wakes: GuestIdentity[] = []
  released = 0
  /** whether its guest has not taken a step since an image was made of it */
  isCaptured = false
  /** how many are connected to its guest */
  connections = 0
  /** what it was started on */
  restoredFrom: { image: MemoryImage, state: string, memory: string } | undefined
  /** what an attached Vm and the guest's links are told */
  readonly bus = new EventEmitter().setMaxListeners(0)

  constructor (spec: VmSpec, pid: number) {
    this.spec = spec
    this.memory = spec.memoryBytes
    this.disks = new Map(spec.disks.map(({ id, path }) => [id, path]))
    this.handle = { driver: 'qemu', version: 1, vmmVersion: '0', pid, startTicks: '0', bootId: 'scripted', directory: spec.directory }
  }

  set (state: VmState): void {
    this.state = state
    this.bus.emit('state', state)
  }

  /** The program runs. */
  begin (): void {
    this.phase = 'running'
    this.bus.emit('started')
  }

  /** The program ends, the guest reports and powers off. */
  async exit (exit: Partial<GuestExit> = {}): Promise<void> {
    const { exitCode = 0, signal = 0, oom = false, error } = exit
    await writeFile(this.spec.files.report, `version=1\nexit_code=${exitCode}\nsignal=${signal}\noom=${oom ? 1 : 0}\n${error === undefined ? '' : `error=${error}\n`}end\n`)
    this.phase = 'exiting'
    this.bus.emit('exited', { exitCode, signal, oom })
    this.set({ status: 'gone' })
  }

  async print (text: string): Promise<void> {
    await appendFile(this.spec.files.output, text)
  }
}

/** The way to its guest. */
export class ScriptedStream extends Duplex {
  readonly vm: ScriptedVm

  constructor (vm: ScriptedVm) {
    super({ read () {}, write (_chunk, _encoding, done) { done() } })
    this.vm = vm
  }
}
