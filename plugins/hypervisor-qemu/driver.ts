// The QEMU driver of the slot `hypervisors`: probe, launch, attach.
import { join } from 'node:path'
import { q35 } from './board.ts'
import type { Board } from './contract.ts'
import { durationMs } from '../../core/config/quantities.ts'
import type { HypervisorDriver, HypervisorImaging, HypervisorProbe, VmSpec } from '../../core/library/hypervisor.ts'
import { isAlive } from '../../core/process/identity.ts'
import { defaultCpuModel, kernelArguments, MAX_VCPUS, QMP_SOCKET } from './args.ts'
import { endProcess } from '../../core/process/end.ts'
import { endLeftOver } from './end-left-over.ts'
import type { GuestService } from '../guest/contract.ts'
import { LaunchFailed } from '../../core/library/vmm/errors.ts'
import { identityOf } from './handle.ts'
import { createImagingProof, type ImagingProofOptions } from './imaging-proof.ts'
import { launchVm, restoreVm, type LaunchOptions } from './launch.ts'
import type { HypervisorQemuConfig } from './manifest.ts'
import { inItsVersion } from '../../core/library/vmm/other-version.ts'
import { createPrivateProof } from './private-proof.ts'
import { createProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { createProbeMemory } from '../../core/library/vmm/probe-memory.ts'
import { probeQemu, type ProbeOptions } from './probe.ts'
import { folderOf } from './run-folder.ts'
import { keyOf } from '../../core/library/vmm/shape.ts'
import { shapeOf } from './shape.ts'
import { createVhostProbe } from './vhost.ts'
import { QemuVm, type VmOptions } from './vm.ts'

export interface DriverDeps extends Pick<ProbeOptions, 'commands'> {
  /** the system that the probes boot, and the link to it */
  readonly guest: Pick<GuestService, 'system' | 'link'>
  /** the driver's own folder, with the probes' results and their VMs */
  readonly folder: string
  /** is called with errors that no caller gets */
  readonly onError: (error: unknown) => void
}

export function createQemuDriver (config: HypervisorQemuConfig, deps: DriverDeps, board: Board = q35): HypervisorDriver {
  const { binary, accelerator, translationCacheMib } = config
  const vmOptions: VmOptions = {
    heartbeat: { intervalMs: durationMs(config.heartbeatInterval), deadlineMs: durationMs(config.heartbeatDeadline) },
    imageTimeoutMs: durationMs(config.imageTimeout),
    commands: deps.commands,
    onError: deps.onError
  }
  const cache = createProbeCache(join(deps.folder, 'probe.json'))
  const tried = join(deps.folder, 'imaging-probe')
  const triedPrivately = join(deps.folder, 'private-probe')
  const vhostUsable = createVhostProbe(deps.commands)
  const probing = createProbeMemory(async () => await probeBoard({
    board: board.name,
    binary, accelerator, kvmCpuModel: config.cpuModel ?? defaultCpuModel('kvm'), bootTimeoutMs: durationMs(config.probeTimeout),
    commands: deps.commands, kernel: async () => await kernelOf(deps.guest), cache
  }))
  const { probe } = probing

  async function probeBoard (options: ProbeOptions): Promise<HypervisorProbe> {
    const found = await probeQemu(options)
    const refusal = found.supported ? board.refusal(found.acceleration === 'kvm' ? 'kvm' : 'tcg') : undefined
    return refusal === undefined ? found : { supported: false, version: found.version, reason: refusal }
  }

  async function launchOptions (spec: VmSpec): Promise<LaunchOptions> {
    const { supported, acceleration, reason, version } = await probe()
    if (!supported || version === undefined) throw LaunchFailed(reason ?? 'QEMU cannot be used on this host')
    const how = acceleration === 'kvm' ? 'kvm' : 'tcg'
    const cpuModel = config.cpuModel ?? defaultCpuModel(how)
    const vhost = how === 'kvm' && spec.network !== undefined && await vhostUsable(spec)
    return { ...vmOptions, binary, vmmVersion: version, accelerator: how, board, cpuModel, translationCacheMib, vhost, timeoutMs: durationMs(config.launchTimeout) }
  }

  const images: Omit<HypervisorImaging, 'refusal'> = {
    async key (spec) {
      const options = await launchOptions(spec)
      return keyOf(await shapeOf(spec, options), kernelArguments(spec, options))
    },
    async restore (spec, image, statePath, how) {
      return await inItsVersion(() => launchOptions(spec), probing.forget, (options) => restoreVm(spec, image, statePath, options, how))
    }
  }
  const launch: HypervisorDriver['launch'] = async (spec, signal) => await inItsVersion(() => launchOptions(spec), probing.forget, (options) => launchVm(spec, options, signal))
  const proving: Omit<ImagingProofOptions, 'directory' | 'cache'> = {
    guest: deps.guest,
    canPlugMemory: board.features.includes('hotplug-memory'),
    timeoutMs: vmOptions.imageTimeoutMs,
    launch,
    restore: images.restore,
    async subject (spec) {
      const [key, { version }, { version: vmm }] = await Promise.all([images.key(spec), deps.guest.system(), probe()])
      return { key: `${key} ${version}`, name: `QEMU ${vmm ?? ''}` }
    }
  }
  const proof = createImagingProof({ ...proving, directory: tried, cache: createProbeCache(join(deps.folder, 'imaging.json')) })
  const privately = createPrivateProof({ ...proving, directory: triedPrivately, cache: createProbeCache(join(deps.folder, 'private.json')), vmmVersion: async () => (await probe()).version })

  return {
    name: board.driver,
    features: board.features,
    mostVcpus: MAX_VCPUS,
    probe,
    launch,
    imaging: { ...images, keepsPaused: true, startsAhead: true, announcesDisks: true, refusal: async ({ hotplugBytes = 0 }) => await proof.refusal(hotplugBytes > 0), privateMemory: privately },
    open: async () => { await Promise.all([tried, triedPrivately].map(endLeftOver)) },
    close: async () => { await Promise.all([proof.close(), privately.close()]) },
    async attach (handle) {
      const identity = identityOf(handle, board.driver)
      if (!isAlive(identity)) {
        // Its last threads may still be ending.
        await endProcess(identity)
        await folderOf(handle.directory).removeStale(QMP_SOCKET)
        return new QemuVm(handle, { status: 'gone' }, vmOptions)
      }
      const vm = new QemuVm(handle, { status: 'hung', reason: 'the VMM has not been asked yet' }, vmOptions)
      await vm.known()
      return vm
    }
  }
}

async function kernelOf (guest: DriverDeps['guest']): ReturnType<ProbeOptions['kernel']> {
  const { kernel, version } = await guest.system()
  return { path: kernel, version }
}
