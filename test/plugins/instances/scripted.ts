// A host for tests of the instances plugin: real database, real files and real routes; VMM, guest and images are scripted,
// so that what no real VM does on demand can be played through.
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { HypervisorDriver, Vm, VmImaging, VmState } from '../../../core/library/hypervisor.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import type { ExecSpec, GuestEntry, GuestService, PathFacts } from '../../../plugins/guest/contract.ts'
import { trustEnvironment } from '../../../plugins/guest/trust-environment.ts'
import type { ImageService, ReadyImage } from '../../../plugins/images/contract.ts'
import { ScriptedEgress } from './scripted-egress.ts'
import type { ScriptedExec } from './scripted-exec.ts'
import { linkTo } from './scripted-link.ts'
import { ScriptedNetwork } from './scripted-network.ts'
import { scriptedPlugins } from './scripted-plugins.ts'
import { ScriptedStream, ScriptedVm, type ImagingStep } from './scripted-vm.ts'

export { ScriptedVm, type ImagingStep } from './scripted-vm.ts'

const GUEST_PHASES = ['waiting', 'asleep', 'running'] as const

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
      return linkTo(stream.vm, this)
    }
  }

  readonly driver: HypervisorDriver = {
    name: 'qemu',
    features: ['disk-io-limit', 'hotplug-memory', 'host-devices', 'balloon-control'],
    probe: async () => ({ supported: true, version: '7.2', acceleration: 'tcg', reason: 'no KVM here' }),
    launch: async (spec) => {
      await this.onLaunch?.()
      await this.step('launch', undefined)
      if (this.launchError !== undefined) throw this.launchError
      const vm = new ScriptedVm(spec, 4_000_000 + this.vms.length)
      if (spec.memory !== undefined) await writeFile(spec.memory.path, `memory of pid ${vm.handle.pid}`)
      this.vms.push(vm)
      await this.#begun('launched', vm)
      return this.#vm(vm)
    },
    imaging: {
      keepsPaused: true,
      refusal: async () => this.imagingRefusal,
      key: async ({ vcpus, memoryBytes, network }) => `${this.vmmVersion} ${vcpus} ${memoryBytes}${network === undefined ? '' : ' networked'}`,
      restore: async (spec, image, statePath, { beforeRun } = {}) => {
        await this.step('restore', undefined)
        const vm = new ScriptedVm(spec, 4_000_000 + this.vms.length)
        if (spec.memory === undefined) throw new Error('restored without memory')
        vm.restoredFrom = { image, state: await readFile(statePath, 'utf8'), memory: await readFile(spec.memory.path, 'utf8') }
        this.vms.push(vm)
        await beforeRun?.(vm.handle)
        await this.step('loaded', vm)
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
      step: async (step) => { await this.step(step, undefined) },
      isAlive: (id) => this.vms.some(({ spec, state }) => spec.id === id && state.status !== 'gone'),
      hasPolicy: (id) => this.egress?.policies.has(id) === true
    })
    return this.network
  }

  /** Gives it a network with a mediated way out, and gives both. */
  mediate (): { network: ScriptedNetwork, egress: ScriptedEgress } {
    const network = this.connect()
    this.egress ??= new ScriptedEgress({
      step: async (step) => { await this.step(step, undefined) },
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
        await this.step('kill', vm)
        if (vm.state.status !== 'gone') vm.set({ status: 'gone' })
        await this.step('killed', vm)
      },
      wait: gone,
      ...this.replacesDisks ? { replaceDisk: async (id: string, path: string) => { await this.#replaceDisk(vm, id, path) } } : {},
      trackDisk: async (id) => {
        await this.step('track', vm)
        vm.tracked.add(id)
        await this.step('tracked', vm)
        return {
          ranges: async () => {
            await this.step('changes', vm)
            return vm.changes
          },
          end: async () => {
            await this.step('untrack', vm)
            vm.tracked.delete(id)
          }
        }
      },
      plugDisk: async ({ id, path }) => {
        await this.step('plug-disk', vm)
        vm.disks.set(id, path)
        await this.step('disk-plugged', vm)
      },
      unplugDisk: async (id) => {
        await this.step('unplug-disk', vm)
        if (vm.mounts.has(`serial:${id}`)) throw new Error(`the disk ${id} was taken from under the guest`)
        vm.disks.delete(id)
        await this.step('disk-unplugged', vm)
      },
      ...vm.spec.balloon === true && this.hasBalloons
        ? {
            balloon: {
              wholeBytes: vm.spec.memoryBytes,
              bytes: async () => vm.memory,
              aim: async (bytes: number) => {
                await this.step('aim', vm)
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
      await this.step(step, vm)
    } catch (error) {
      vm.set({ status: 'gone' })
      throw error
    }
  }

  async step (step: ImagingStep, vm: ScriptedVm | undefined): Promise<void> {
    await this.onStep?.(step, vm)
    const failure = this.failures.get(step)
    if (failure !== undefined) throw failure
  }

  async #replaceDisk (vm: ScriptedVm, id: string, path: string): Promise<void> {
    await this.step('replace', vm)
    vm.disks.set(id, path)
    await this.step('replaced', vm)
  }

  #imaging (vm: ScriptedVm): VmImaging {
    const { memory } = vm.spec
    return {
      memoryFile: memory?.path,
      ...memory === undefined ? {
        copyAhead: async (memoryPath: string) => {
          await this.step('copy-ahead', vm)
          await writeFile(memoryPath, 'of no one moment')
          await this.step('copied-ahead', vm)
        }
      } : {},
      pause: async () => {
        await this.step('pause', vm)
        vm.set({ status: 'paused' })
        await this.step('paused', vm)
      },
      resume: async () => {
        await this.step('resume', vm)
        if (vm.state.status === 'gone') throw new Error('the VM is gone')
        this.egress?.runs(vm.spec.id)
        // Its memory goes on from what an image may have been made of.
        if (vm.isCaptured && memory !== undefined) await appendFile(memory.path, ', gone on')
        vm.isCaptured = false
        vm.set({ status: 'running' })
      },
      capture: async ({ statePath, memoryPath }) => {
        await this.step('capture', vm)
        vm.set({ status: 'paused' })
        await writeFile(statePath, `state of a guest ${vm.phase}`)
        if (memory === undefined) await writeFile(memoryPath ?? '', `memory of pid ${vm.handle.pid}`)
        vm.isCaptured = true
        await this.step('captured', vm)
        return {
          driver: 'qemu', version: 1, vmmVersion: '0', key: 'scripted', shape: {}, vcpus: vm.spec.vcpus, memoryBytes: vm.spec.memoryBytes,
          stateBytes: 1, memoryStoredBytes: 1, capturedAt: new Date().toISOString()
        }
      }
    }
  }
}
