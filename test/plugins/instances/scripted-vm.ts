// One VM of a scripted host: a fake one without a process, whose guest does what the test says.
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { Duplex } from 'node:stream'
import type { VmHandle, VmSpec } from '../../../core/library/hypervisor.ts'
import type { ExecSpec, GuestExit, GuestIdentity, GuestMount, GuestNetwork, GuestPhase, PutSpec, Workload } from '../../../plugins/guest/contract.ts'
import type { DriverStep } from '../../hypervisor-fake/in-process/host.ts'
import { Machine } from '../../hypervisor-fake/in-process/machine.ts'
import type { EgressStep } from './scripted-egress.ts'
import type { ScriptedExec } from './scripted-exec.ts'
import type { NetworkStep } from './scripted-network.ts'

/** before, and with a participle after, what driver and guest do */
export type ImagingStep = DriverStep | 'rehearse' | 'rehearsed' | 'bind' | 'bound' | 'flush' | 'flushed' | 'sleep' | 'slept' | 'wake' | 'woken' | 'mount' | 'mounted' | 'unmount' | 'unmounted' | 'shutdown' | NetworkStep | EgressStep

const PHASES = ['waiting', 'asleep', 'running'] as const

/** One scripted VM: its guest, and what the test sees of it. */
export class ScriptedVm extends Machine {
  workload: Workload | undefined
  phase: GuestPhase = 'waiting'
  readonly shutdowns: number[] = []
  readonly execs: { spec: ExecSpec, session: ScriptedExec }[] = []
  readonly puts: { spec: PutSpec, bytes: Buffer }[] = []
  /** calls that their caller has given up */
  readonly cancelled: string[] = []
  /** ports that the host listens on, and who takes their connections */
  readonly ports = new Map<number, (connection: Duplex) => void>()
  /** of the guest, by device */
  readonly mounts = new Map<string, GuestMount>()
  /** devices of mounts that something in the guest uses */
  readonly busy = new Set<string>()
  rehearsals = 0
  /** what the last rehearsal was told of the network */
  rehearsedNetwork: GuestNetwork | undefined
  /** whether the guest was asked to give its disks their driver ahead */
  isBound = false
  /** what the guest was told at each waking */
  readonly wakes: GuestIdentity[] = []
  /** how many are connected to its guest */
  connections = 0
  /** what its memory holds, where that is in no file of its own */
  #content: string

  constructor (spec: VmSpec, handle: VmHandle) {
    super(spec, handle)
    this.#content = `memory of pid ${handle.pid}`
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
    await appendFile(this.files.output, text)
  }

  open (): Duplex { return new ScriptedStream(this) }

  async boot (): Promise<void> {
    const { memory } = this.spec
    if (memory !== undefined) await writeFile(memory.path, this.#content, { flag: 'r+' })
  }

  save (): string { return `state of a guest ${this.phase}` }

  async saveMemory (path: string, isOwn: boolean): Promise<void> {
    if (!isOwn) await writeFile(path, this.#content)
  }

  async load (statePath: string, memoryPath: string): Promise<{ state: string, memory: string }> {
    const [state, memory] = await Promise.all([readFile(statePath, 'utf8'), readFile(memoryPath, 'utf8')])
    this.#content = memory
    this.phase = PHASES.find((phase) => state === `state of a guest ${phase}`) ?? 'running'
    return { state, memory }
  }

  async goOn (): Promise<void> {
    const step = ', gone on'
    this.#content += step
    const { memory } = this.spec
    if (memory?.sharing === 'shared') await appendFile(memory.path, step)
  }

  override checkReleased (id: string): void {
    if (this.mounts.has(`serial:${id}`)) throw new Error(`the disk ${id} was taken from under the guest`)
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
