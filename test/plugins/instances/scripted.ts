// A host for tests of the instances plugin: real database, real files and real routes; VMM, guest and images are scripted,
// so that what no real VM does on demand can be played through.
import { EventEmitter } from 'node:events'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Duplex, PassThrough } from 'node:stream'
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { HypervisorDriver, MemoryImage, Vm, VmHandle, VmImaging, VmSpec, VmState } from '../../../core/library/hypervisor.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import type {
  ExecSpec, GuestEntry, GuestExit, GuestHello, GuestIdentity, GuestLink, GuestMount, GuestPhase, GuestService, PathFacts, PutSpec, Workload
} from '../../../plugins/guest/contract.ts'
import { trustEnvironment } from '../../../plugins/guest/trust-environment.ts'
import type { ImageService, ReadyImage } from '../../../plugins/images/contract.ts'
import { ScriptedEgress, type EgressStep } from './scripted-egress.ts'
import { ScriptedExec } from './scripted-exec.ts'
import { ScriptedNetwork, type NetworkStep } from './scripted-network.ts'
import { scriptedPlugins } from './scripted-plugins.ts'

/** before, and with a participle after, what driver and guest do */
export type ImagingStep = 'launch' | 'launched' | 'rehearse' | 'rehearsed' | 'replace' | 'replaced' | 'pause' | 'paused' | 'sleep' | 'slept' | 'wake' | 'woken' | 'capture' | 'captured' | 'resume' | 'restore' | 'loaded' | 'restored' | 'kill' | 'killed' | 'plug-disk' | 'disk-plugged' | 'unplug-disk' | 'disk-unplugged' | 'mount' | 'mounted' | 'unmount' | 'unmounted' | 'aim' | 'shutdown' | NetworkStep | EgressStep

const GUEST_PHASES = ['waiting', 'asleep', 'running'] as const

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

/** The machines, the guest and the images of one scripted host. They outlive a server, as VMMs do. */
export class ScriptedHost {
  readonly vms: ScriptedVm[] = []
  readonly held = new Set<string>()
  /** absent: the plugin networking is not there */
  network: ScriptedNetwork | undefined
  /** absent: the plugin egress is not there */
  egress: ScriptedEgress | undefined
  /** how a launched guest behaves by itself */
  behaviour: 'run' | 'boot-only' = 'run'
  launchError: Error | undefined
  /** why no VM can be saved and restored */
  imagingRefusal: string | undefined
  /** fails that step */
  readonly failures = new Map<ImagingStep, Error>()
  /** called before each step of making or using a memory image */
  onStep: ((step: ImagingStep, vm: ScriptedVm | undefined) => void | Promise<void>) | undefined
  /** a template of another one is of no use */
  vmmVersion = '0'
  systemVersion = '1'
  /** name of the disk with the kernel's headers; absent: the guest has none */
  kernelHeaders: string | undefined
  /** whether the disks of VMs can be replaced */
  replacesDisks = true
  /** whether guests can give memory back */
  hasBalloons = true
  /** whether VMs can be captured */
  makesImages = true
  onLaunch: (() => void | Promise<void>) | undefined
  /** who answers at a port of a guest; undefined: nobody listens */
  onConnect: ((port: number, address: string, signal: AbortSignal) => Promise<Duplex | undefined>) | undefined
  onExec: ((session: ScriptedExec, spec: ExecSpec) => void) | undefined
  files = new Map<string, PathFacts>()
  entries: GuestEntry[] = []
  image: ReadyImage = {
    name: 'docker.io/library/test:latest',
    digest: `sha256:${'0'.repeat(64)}`,
    status: 'ready',
    createdAt: new Date(0),
    rootfs: '/nonexistent.erofs',
    entrypoint: ['/bin/tool'],
    cmd: ['serve'],
    env: { FROM_IMAGE: 'yes' },
    workingDir: '/srv'
  }

  readonly images: ImageService = {
    pull: async () => this.image,
    require: async (reference) => {
      if (reference === 'missing') throw InvalidRequest('image: not here')
      return this.image
    },
    requirePlatform: (platform) => { if (platform !== 'linux/amd64') throw InvalidRequest(`platform: not ${platform}`) },
    byDigest: async (digest) => digest === this.image.digest ? this.image : undefined,
    hold: async (_digest, holder) => { this.held.add(holder) },
    release: async (_digest, holder) => { this.held.delete(holder) }
  }

  readonly guest: GuestService = {
    system: async () => ({ version: this.systemVersion, kernel: '/vmlinux', initrd: '/initrd', arguments: ['console=hvc0'] }),
    kernelHeaders: async () => this.kernelHeaders,
    kernelHeadersDisk: (name) => `/headers/${name}`,
    trustEnvironment,
    link: (stream) => {
      if (!(stream instanceof ScriptedStream)) throw new Error('not a scripted stream')
      return this.#link(stream)
    }
  }

  readonly driver: HypervisorDriver = {
    name: 'qemu',
    features: ['disk-io-limit', 'hotplug-memory', 'host-devices', 'balloon-control'],
    probe: async () => ({ supported: true, version: '7.2', acceleration: 'tcg', reason: 'no KVM here' }),
    launch: async (spec) => {
      await this.onLaunch?.()
      await this.#step('launch', undefined)
      if (this.launchError !== undefined) throw this.launchError
      const vm = new ScriptedVm(spec, 4_000_000 + this.vms.length)
      if (spec.memory !== undefined) await writeFile(spec.memory.path, `memory of pid ${vm.handle.pid}`)
      this.vms.push(vm)
      await this.#begun('launched', vm)
      return this.#vm(vm)
    },
    imaging: {
      refusal: async () => this.imagingRefusal,
      key: async ({ vcpus, memoryBytes, network }) => `${this.vmmVersion} ${vcpus} ${memoryBytes}${network === undefined ? '' : ' networked'}`,
      restore: async (spec, image, statePath, { beforeRun } = {}) => {
        await this.#step('restore', undefined)
        const vm = new ScriptedVm(spec, 4_000_000 + this.vms.length)
        if (spec.memory === undefined) throw new Error('restored without memory')
        vm.restoredFrom = { image, state: await readFile(statePath, 'utf8'), memory: await readFile(spec.memory.path, 'utf8') }
        this.vms.push(vm)
        await beforeRun?.(vm.handle)
        await this.#step('loaded', vm)
        // The guest's first step.
        await appendFile(spec.memory.path, ', gone on')
        vm.phase = GUEST_PHASES.find((phase) => vm.restoredFrom?.state === `state of a guest ${phase}`) ?? 'running'
        await this.#begun('restored', vm)
        return this.#vm(vm)
      }
    },
    attach: async (handle) => {
      const vm = this.vms.find((known) => known.handle.pid === handle.pid)
      if (vm === undefined) throw new Error(`no VM with pid ${handle.pid}`)
      return this.#vm(vm)
    }
  }

  /** Gives it a network, and gives that. */
  connect (): ScriptedNetwork {
    this.network ??= new ScriptedNetwork({
      step: async (step) => { await this.#step(step, undefined) },
      isAlive: (id) => this.vms.some(({ spec, state }) => spec.id === id && state.status !== 'gone'),
      hasPolicy: (id) => this.egress?.policies.has(id) === true
    })
    return this.network
  }

  /** Gives it a network with a mediated way out, and gives both. */
  mediate (): { network: ScriptedNetwork, egress: ScriptedEgress } {
    const network = this.connect()
    this.egress ??= new ScriptedEgress({
      step: async (step) => { await this.#step(step, undefined) },
      modeOf: (id) => network.ports.get(id)?.egress,
      isRunning: (id) => this.vms.some(({ spec, state }) => spec.id === id && state.status === 'running')
    })
    return { network, egress: this.egress }
  }

  /** The last launched VM. */
  get vm (): ScriptedVm {
    const vm = this.vms.at(-1)
    if (vm === undefined) throw new Error('nothing was launched')
    return vm
  }

  get plugins (): Plugin[] {
    return scriptedPlugins(this)
  }

  #vm (vm: ScriptedVm): Vm {
    const gone = async (): Promise<void> => {
      if (vm.state.status === 'gone') return
      await new Promise<void>((resolve) => {
        vm.bus.on('state', (state: VmState) => { if (state.status === 'gone') resolve() })
      })
    }
    return {
      handle: vm.handle,
      get state () { return vm.state },
      onState (listener) {
        vm.bus.on('state', listener)
        return () => { vm.bus.off('state', listener) }
      },
      connect: async () => new ScriptedStream(vm),
      ...this.makesImages ? { imaging: this.#imaging(vm) } : {},
      kill: async () => {
        await this.#step('kill', vm)
        if (vm.state.status !== 'gone') vm.set({ status: 'gone' })
        await this.#step('killed', vm)
      },
      wait: gone,
      ...this.replacesDisks ? { replaceDisk: async (id: string, path: string) => { await this.#replaceDisk(vm, id, path) } } : {},
      plugDisk: async ({ id, path }) => {
        await this.#step('plug-disk', vm)
        vm.disks.set(id, path)
        await this.#step('disk-plugged', vm)
      },
      unplugDisk: async (id) => {
        await this.#step('unplug-disk', vm)
        if (vm.mounts.has(`serial:${id}`)) throw new Error(`the disk ${id} was taken from under the guest`)
        vm.disks.delete(id)
        await this.#step('disk-unplugged', vm)
      },
      ...vm.spec.balloon === true && this.hasBalloons
        ? {
            balloon: {
              wholeBytes: vm.spec.memoryBytes,
              bytes: async () => vm.memory,
              aim: async (bytes: number) => {
                await this.#step('aim', vm)
                vm.aims.push(bytes)
                if (!vm.stubborn) vm.memory = bytes
              }
            }
          }
        : {},
      limitDisks: async (bytesPerSecond) => { vm.diskLimit = bytesPerSecond },
      rotate: async (file, path) => { vm.rotations.push(join(file, path)) },
      release: () => { vm.released++ }
    }
  }

  /** As every driver: a VM that does not come about leaves nothing. */
  async #begun (step: ImagingStep, vm: ScriptedVm): Promise<void> {
    this.egress?.runs(vm.spec.id)
    try {
      await this.#step(step, vm)
    } catch (error) {
      vm.set({ status: 'gone' })
      throw error
    }
  }

  async #step (step: ImagingStep, vm: ScriptedVm | undefined): Promise<void> {
    await this.onStep?.(step, vm)
    const failure = this.failures.get(step)
    if (failure !== undefined) throw failure
  }

  async #replaceDisk (vm: ScriptedVm, id: string, path: string): Promise<void> {
    await this.#step('replace', vm)
    vm.disks.set(id, path)
    await this.#step('replaced', vm)
  }

  #imaging (vm: ScriptedVm): VmImaging {
    const { memory } = vm.spec
    return {
      memoryFile: memory?.path,
      pause: async () => {
        await this.#step('pause', vm)
        vm.set({ status: 'paused' })
        await this.#step('paused', vm)
      },
      resume: async () => {
        await this.#step('resume', vm)
        if (vm.state.status === 'gone') throw new Error('the VM is gone')
        this.egress?.runs(vm.spec.id)
        vm.set({ status: 'running' })
      },
      capture: async ({ statePath, memoryPath }) => {
        await this.#step('capture', vm)
        vm.set({ status: 'paused' })
        await writeFile(statePath, `state of a guest ${vm.phase}`)
        if (memory === undefined) await writeFile(memoryPath ?? '', `memory of pid ${vm.handle.pid}`)
        await this.#step('captured', vm)
        return {
          driver: 'qemu', version: 1, vmmVersion: '0', key: 'scripted', shape: {}, vcpus: vm.spec.vcpus, memoryBytes: vm.spec.memoryBytes,
          stateBytes: 1, memoryStoredBytes: 1, capturedAt: new Date().toISOString()
        }
      }
    }
  }

  #link ({ vm }: ScriptedStream): GuestLink {
    const host = this
    const { promise: closed, resolve: close } = deferred<string>()
    vm.bus.on('state', (state: VmState) => { if (state.status === 'gone') close('the VM is gone') })
    vm.bus.on('unlink', () => { close('unlinked') })
    return {
      closed,
      close: () => { close('closed') },
      hello: host.behaviour === 'boot-only' && vm.phase === 'waiting' && vm.workload === undefined ? new Promise<GuestHello>(() => {}) : Promise.resolve(hello(vm)),
      async run (workload) {
        vm.workload = workload
        for (const mount of workload.mounts) vm.mounts.set(mount.device, mount)
        vm.phase = 'starting'
        if (host.behaviour === 'run') return vm.begin()
        await new Promise<void>((resolve) => { vm.bus.once('started', () => { resolve() }) })
      },
      sleep: async () => {
        await host.#step('sleep', vm)
        vm.phase = 'asleep'
        await host.#step('slept', vm)
      },
      wake: async (identity = {}) => {
        await host.#step('wake', vm)
        vm.wakes.push(identity)
        vm.phase = 'running'
        await host.#step('woken', vm)
      },
      rehearse: async () => {
        await host.#step('rehearse', vm)
        vm.rehearsals++
        await host.#step('rehearsed', vm)
      },
      mount: async (mount) => {
        await host.#step('mount', vm)
        if (!vm.disks.has(mount.device.replace('serial:', ''))) throw Object.assign(new Error(`the disk ${mount.device} is missing`), { code: 'guest_refused', errno: 19 })
        vm.mounts.set(mount.device, mount)
        await host.#step('mounted', vm)
      },
      unmount: async ({ device }) => {
        await host.#step('unmount', vm)
        if (vm.busy.has(device)) throw Object.assign(new Error(`${vm.mounts.get(device)?.path ?? ''} is in use in the guest`), { code: 'guest_refused', errno: 16 })
        vm.mounts.delete(device)
        await host.#step('unmounted', vm)
      },
      onStarted: (listener) => subscribe(vm, 'started', listener, vm.phase === 'running' || vm.phase === 'asleep'),
      onExited: (listener) => subscribe(vm, 'exited', listener, false),
      async listen (port, accept) {
        vm.ports.set(port, accept)
        return { close: () => { vm.ports.delete(port) } }
      },
      async connect (port, { address = '127.0.0.1', signal }) {
        const connection = await host.onConnect?.(port, address, signal)
        if (connection === undefined) throw Object.assign(new Error('Connection refused'), { code: 'guest_refused', errno: 111 })
        return connection
      },
      async shutdown (graceMs) {
        vm.shutdowns.push(graceMs)
        await host.#step('shutdown', vm)
        vm.exit({ exitCode: 143, signal: 15 }).catch((error: unknown) => { throw error })
      },
      exec (spec) {
        const session = new ScriptedExec()
        vm.execs.push({ spec, session })
        host.onExec?.(session, spec)
        return session
      },
      stat: async (path) => host.files.get(path) ?? { exists: false },
      put (spec) {
        const content = new PassThrough()
        const chunks: Buffer[] = []
        content.on('data', (chunk: Buffer) => { chunks.push(chunk) })
        const { promise: result, resolve, reject } = deferred<{ bytes: number }>()
        content.on('end', () => {
          const bytes = Buffer.concat(chunks)
          if (spec.path === '/denied') return reject(Object.assign(new Error('permission denied'), { code: 'guest_refused', errno: 13 }))
          vm.puts.push({ spec, bytes })
          resolve({ bytes: bytes.length })
        })
        return { content, result, cancel: () => { content.destroy() } }
      },
      async * get (path) {
        if (host.entries.length === 0) throw Object.assign(new Error(`${path}: no such file or directory`), { code: 'guest_refused', errno: 2 })
        yield * host.entries
      }
    }
  }
}

function deferred<T> (): { promise: Promise<T>, resolve: (value: T) => void, reject: (error: Error) => void } {
  let resolve: (value: T) => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<T>((_resolve, _reject) => {
    resolve = _resolve
    reject = _reject
  })
  return { promise, resolve, reject }
}

class ScriptedStream extends Duplex {
  readonly vm: ScriptedVm

  constructor (vm: ScriptedVm) {
    super({ read () {}, write (_chunk, _encoding, done) { done() } })
    this.vm = vm
  }
}

function hello (vm: ScriptedVm): GuestHello {
  return { protocol: 1, phase: vm.phase, kernel: '6.1.0', bootId: 'x', memoryTotalBytes: 1, uptimeMs: 1, agent: true }
}

function subscribe<A extends unknown[]> (vm: ScriptedVm, event: string, listener: (...args: A) => void, already: boolean): () => void {
  vm.bus.on(event, listener)
  if (already) Reflect.apply(listener, undefined, [])
  return () => { vm.bus.off(event, listener) }
}
