// A driver of the slot `hypervisors` for VMMs that have a REST API and need KVM: the part that does not depend on the VMM.
import { join } from 'node:path'
import { durationMs } from '../../config/quantities.ts'
import type { HostCommands } from '../../contracts/services.ts'
import { endProcess } from '../../process/end.ts'
import { isAlive } from '../../process/identity.ts'
import type { HypervisorDriver, MemoryImage, RestoreOptions, Vm, VmHandle, VmSpec, VmState } from '../hypervisor.ts'
import { LaunchFailed } from './errors.ts'
import { identityOf } from './handle.ts'
import { probeOnKvm, type ProbedVmm } from './kvm-probe.ts'
import { inItsVersion } from './other-version.ts'
import { createProbeCache } from './probe-cache.ts'
import { createProbeMemory } from './probe-memory.ts'
import type { RestVm, RestVmOptions } from './rest-vm.ts'
import type { RunFolder } from './run-folder.ts'
import type { RestVmmConfig } from './settings.ts'

export interface RestDriverDeps {
  readonly commands: HostCommands
  /** the kernel that the probe boots */
  readonly guest: { system (): Promise<{ readonly kernel: string, readonly version: string }> } | undefined
  /** the driver's own folder, for the result of the probe */
  readonly folder: string
  /** receives errors that no caller waits for */
  readonly onError: (error: unknown) => void
  /** for tests without KVM; default: /dev/kvm */
  readonly kvm?: string
}

export interface VmOptions extends RestVmOptions {
  readonly commands: HostCommands
  /** most time for making or loading a memory image, `ms` */
  readonly imageTimeoutMs: number
}

export interface LaunchOptions extends VmOptions {
  readonly binary: string
  readonly vmmVersion: string
  /** time for the VMM to answer, `ms` */
  readonly timeoutMs: number
}

export interface RestDriverParts {
  readonly driver: string
  readonly vmm: ProbedVmm
  readonly features: NonNullable<HypervisorDriver['features']>
  readonly mostVcpus: number
  /** name of the socket of its API */
  readonly api: string
  readonly folderOf: (directory: string) => RunFolder
  readonly createVm: (handle: VmHandle, state: VmState, options: VmOptions) => RestVm
  readonly launch: (spec: VmSpec, options: LaunchOptions, signal?: AbortSignal) => Promise<Vm>
  readonly keyFor: (spec: VmSpec, options: LaunchOptions) => Promise<string>
  readonly disksStayBound?: true
  readonly restore: (spec: VmSpec, image: MemoryImage, statePath: string, options: LaunchOptions, how?: RestoreOptions) => Promise<Vm>
}

export function createRestDriver (config: RestVmmConfig, { commands, guest, folder, onError, kvm }: RestDriverDeps, parts: RestDriverParts): HypervisorDriver {
  const { driver, vmm } = parts
  const vmOptions: VmOptions = {
    commands,
    heartbeat: { intervalMs: durationMs(config.heartbeatInterval), deadlineMs: durationMs(config.heartbeatDeadline) },
    guestTimeoutMs: durationMs(config.guestTimeout),
    imageTimeoutMs: durationMs(config.imageTimeout),
    onError
  }
  const cache = createProbeCache(join(folder, 'probe.json'))
  const probing = createProbeMemory(async () => {
    const kernel = async (): Promise<{ path: string, version: string }> => {
      if (guest === undefined) throw LaunchFailed('there is no system for guests')
      const system = await guest.system()
      return { path: system.kernel, version: system.version }
    }
    return await probeOnKvm(vmm, { binary: config.binary, bootTimeoutMs: durationMs(config.probeTimeout), commands, kernel, cache, ...kvm === undefined ? {} : { kvm } })
  })
  const { probe } = probing

  async function launchOptions (): Promise<LaunchOptions> {
    const { supported, reason, version } = await probe()
    if (!supported || version === undefined) throw LaunchFailed(reason ?? `${vmm.name} cannot be used on this host`)
    return { ...vmOptions, binary: config.binary, vmmVersion: version, timeoutMs: durationMs(config.launchTimeout) }
  }

  return {
    name: driver,
    features: parts.features,
    mostVcpus: parts.mostVcpus,
    probe,
    launch: async (spec, signal) => await inItsVersion(launchOptions, probing.forget, (options) => parts.launch(spec, options, signal)),
    imaging: {
      ...parts.disksStayBound === undefined ? {} : { disksStayBound: parts.disksStayBound },
      refusal: async ({ hotplugBytes = 0 }) => hotplugBytes > 0 ? `the hypervisor ${driver} cannot plug memory into a VM` : undefined,
      key: async (spec) => await parts.keyFor(spec, await launchOptions()),
      restore: async (spec, image, statePath, how) => await inItsVersion(launchOptions, probing.forget, (options) => parts.restore(spec, image, statePath, options, how))
    },
    async attach (handle) {
      const identity = identityOf(driver, handle)
      if (!isAlive(identity)) {
        // Its last threads may still be ending.
        await endProcess(identity)
        await parts.folderOf(handle.directory).removeStale(parts.api)
        return parts.createVm(handle, { status: 'gone' }, vmOptions)
      }
      const vm = parts.createVm(handle, { status: 'hung', reason: 'the VMM has not been asked yet' }, vmOptions)
      await vm.known()
      return vm
    }
  }
}
