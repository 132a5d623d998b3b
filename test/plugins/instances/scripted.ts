// A host for tests of the instances plugin: real database, real files and real routes; the driver is the fake one without processes, guest and images are scripted,
// so that what no real VM does on demand can be played through.
import type { Duplex } from 'node:stream'
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { VmHandle, VmSpec } from '../../../core/library/hypervisor.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import type { ExecSpec, GuestEntry, GuestService, PathFacts } from '../../../plugins/guest/contract.ts'
import { messageSizes } from '../../../plugins/guest/link/message-sizes.ts'
import { trustEnvironment } from '../../../plugins/guest/trust-environment.ts'
import type { ImageService, ReadyImage } from '../../../plugins/images/contract.ts'
import { VERSION, type DiskLimits } from '../../hypervisor-fake/image.ts'
import { createInProcessDriver } from '../../hypervisor-fake/in-process/driver.ts'
import type { Host } from '../../hypervisor-fake/in-process/host.ts'
import { ScriptedEgress } from './scripted-egress.ts'
import type { ScriptedExec } from './scripted-exec.ts'
import { linkTo } from './scripted-link.ts'
import { ScriptedNetwork } from './scripted-network.ts'
import { scriptedPlugins } from './scripted-plugins.ts'
import { ScriptedStream, ScriptedVm, type ImagingStep } from './scripted-vm.ts'

export { ScriptedVm, type ImagingStep } from './scripted-vm.ts'

/** no real one is there */
const KERNEL = '/vmlinux'

/** The machines, the guest and the images of one scripted host. They outlive a server, as VMMs do. */
export class ScriptedHost implements Host<ScriptedVm> {
  readonly name = 'qemu'
  readonly features = ['disk-io-limit', 'hotplug-memory', 'host-devices', 'removable-disks', 'balloon-control'] as const
  /** Tests compare memory files, and pack them. */
  readonly hasWholeMemory = false
  servers = 0
  readonly vms: ScriptedVm[] = []
  readonly held = new Set<string>()
  /** absent: the plugin networking is not there */
  network: ScriptedNetwork | undefined
  /** absent: the plugin egress is not there */
  egress: ScriptedEgress | undefined
  /** how a launched guest behaves by itself */
  behaviour: 'run' | 'boot-only' = 'run'
  launchError: Error | undefined
  attachError: Error | undefined
  /** whether VMs can share a memory file, and be saved as differences from it */
  sharesMemory = false
  /** why no VM can be saved and restored */
  imagingRefusal: string | undefined
  /** fails that step */
  readonly failures = new Map<ImagingStep, Error>()
  /** called before each step of making or using a memory image */
  onStep: ((step: ImagingStep, vm: ScriptedVm | undefined, signal?: AbortSignal) => void | Promise<void>) | undefined
  /** a template of another one is of no use */
  vmmVersion: string = VERSION
  systemVersion = '1'
  /** name of the disk with the kernel's headers; absent: the guest has none */
  kernelHeaders: string | undefined
  diskLimits: DiskLimits = 'changeable'
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
  /** whether guests ever answer when they are asked for a path, or given one */
  answersFiles = true
  /** why guests refuse what they are to run */
  runRefusal: Error | undefined
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
    release: async (_digest, holder) => { this.held.delete(holder) },
    retain: async (kind, holders) => { for (const holder of [...this.held]) if (holder.startsWith(`${kind}:`) && !holders.has(holder)) this.held.delete(holder) }
  }

  readonly guest: GuestService = {
    system: async () => ({ version: this.systemVersion, kernel: KERNEL, initrd: '/initrd', arguments: ['console=hvc0'] }),
    kernelHeaders: async () => this.kernelHeaders,
    kernelHeadersDisk: (name) => `/headers/${name}`,
    trustEnvironment,
    messageSizes,
    link: (stream) => {
      if (!(stream instanceof ScriptedStream)) throw new Error('not a scripted stream')
      return linkTo(stream, this)
    }
  }

  readonly driver = createInProcessDriver<ScriptedVm>(this)

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

  /** For a server that starts: one that had them before is dead by then. */
  get plugins (): Plugin[] {
    this.servers++
    return scriptedPlugins(this)
  }

  makeVm (spec: VmSpec, handle: VmHandle): ScriptedVm { return new ScriptedVm(spec, handle) }

  runs ({ spec }: ScriptedVm): void { this.egress?.runs(spec.id) }

  isImaginary (path: string): boolean { return path === KERNEL || path === this.image.rootfs }

  async step (step: ImagingStep, vm: ScriptedVm | undefined, signal?: AbortSignal): Promise<void> {
    if (step === 'launch') await this.onLaunch?.()
    await this.onStep?.(step, vm, signal)
    const failure = this.failures.get(step)
    if (failure !== undefined) throw failure
    if (step === 'launch' && this.launchError !== undefined) throw this.launchError
  }
}
