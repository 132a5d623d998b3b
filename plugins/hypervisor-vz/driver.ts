// The driver `vz` of the slot `hypervisors`: probe, launch, attach. No memory images: vfkit has no requests for them.
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { LaunchFailed } from '../../core/library/vmm/errors.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { createProbeMemory } from '../../core/library/vmm/probe-memory.ts'
import type { RestVmOptions } from '../../core/library/vmm/rest-vm.ts'
import { endProcess } from '../../core/process/end.ts'
import { isAlive } from '../../core/process/identity.ts'
import { launchVm } from './launch.ts'
import type { HypervisorVzConfig } from './manifest.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { placeOf } from './place.ts'
import { probeVz, type ProbedSystem } from './probe.ts'
import { createVm } from './vm.ts'

export interface VzDriverDeps {
  readonly commands: HostCommands
  /** the system that the probe boots */
  readonly guest: { system (): Promise<ProbedSystem> }
  /** the driver's own folder, with the probe's results and short links to run folders */
  readonly folder: string
  /** is called with errors that no caller gets */
  readonly onError: (error: unknown) => void
  /** for tests on another platform; default: this host's */
  readonly platform?: NodeJS.Platform
}

export function createVzDriver (config: HypervisorVzConfig, { commands, guest, folder, onError, platform = process.platform }: VzDriverDeps): HypervisorDriver {
  const vmOptions: RestVmOptions = {
    heartbeat: { intervalMs: durationMs(config.heartbeatInterval), deadlineMs: durationMs(config.heartbeatDeadline) },
    guestTimeoutMs: durationMs(config.guestTimeout),
    onError
  }
  const { binary } = config
  const cache = createProbeCache(join(folder, 'probe.json'))
  const { probe } = createProbeMemory(async () => await probeVz({ binary, bootTimeoutMs: durationMs(config.probeTimeout), commands, system: () => guest.system(), cache, platform }))

  return {
    name: DRIVER,
    features: [],
    probe,
    async launch (spec, signal) {
      const { supported, reason, version } = await probe()
      if (!supported || version === undefined) throw LaunchFailed(reason ?? 'vfkit cannot be used on this host')
      return await launchVm(spec, { ...vmOptions, binary, vmmVersion: version, timeoutMs: durationMs(config.launchTimeout), links: folder }, signal)
    },
    async attach (handle) {
      const identity = identityOf(DRIVER, handle)
      const place = placeOf(handle.directory, folder)
      if (!isAlive(identity)) {
        // Its last threads may still be ending.
        await endProcess(identity)
        await place.removeStale(API_SOCKET)
        return createVm(handle, { status: 'gone' }, place, vmOptions)
      }
      const vm = createVm(handle, { status: 'hung', reason: 'the VMM has not been asked yet' }, place, vmOptions)
      await vm.known()
      return vm
    }
  }
}
