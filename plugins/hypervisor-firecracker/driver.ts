// The Firecracker driver of the slot `hypervisors`: probe, launch, attach, memory images.
import { join } from 'node:path'
import { durationMs } from '../../core/config/quantities.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { HypervisorDriver, HypervisorProbe } from '../../core/library/hypervisor.ts'
import { LaunchFailed } from '../../core/library/vmm/errors.ts'
import { identityOf } from '../../core/library/vmm/handle.ts'
import { createProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { endProcess } from '../../core/process/end.ts'
import { isAlive } from '../../core/process/identity.ts'
import type { GuestService } from '../guest/contract.ts'
import { keyFor, launchVm, restoreVm, type LaunchOptions } from './launch.ts'
import type { HypervisorFirecrackerConfig } from './manifest.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { probeFirecracker } from './probe.ts'
import { createVm, folderOf, type VmOptions } from './vm.ts'

export interface DriverDeps {
  readonly commands: HostCommands
  /** what the probe boots */
  readonly guest: Pick<GuestService, 'system'> | undefined
  /** the driver's own folder: what the probe has found */
  readonly folder: string
  /** hears what goes wrong where nobody waits */
  readonly onError: (error: unknown) => void
  /** for tests without KVM; default: /dev/kvm */
  readonly kvm?: string
}

export function createFirecrackerDriver (config: HypervisorFirecrackerConfig, { commands, guest, folder, onError, kvm }: DriverDeps): HypervisorDriver {
  const vmOptions: VmOptions = {
    commands,
    heartbeat: { intervalMs: durationMs(config.heartbeatInterval), deadlineMs: durationMs(config.heartbeatDeadline) },
    guestTimeoutMs: durationMs(config.guestTimeout),
    imageTimeoutMs: durationMs(config.imageTimeout),
    onError
  }
  const cache = createProbeCache(join(folder, 'probe.json'))
  let probed: Promise<HypervisorProbe> | undefined

  function probe (): Promise<HypervisorProbe> {
    const kernel = async (): Promise<{ path: string, version: string }> => {
      if (guest === undefined) throw LaunchFailed('there is no system for guests')
      const system = await guest.system()
      return { path: system.kernel, version: system.version }
    }
    probed ??= probeFirecracker({ binary: config.binary, bootTimeoutMs: durationMs(config.probeTimeout), commands, kernel, cache, ...kvm === undefined ? {} : { kvm } })
      // A failure to find out is not an answer.
      .catch((error: unknown) => { probed = undefined; throw error })
    return probed
  }

  async function launchOptions (): Promise<LaunchOptions> {
    const { supported, reason, version } = await probe()
    if (!supported || version === undefined) throw LaunchFailed(reason ?? 'Firecracker cannot be used on this host')
    return { ...vmOptions, binary: config.binary, vmmVersion: version, timeoutMs: durationMs(config.launchTimeout) }
  }

  return {
    name: DRIVER,
    features: ['disk-io-limit'],
    probe,
    launch: async (spec, signal) => await launchVm(spec, await launchOptions(), signal),
    imaging: {
      refusal: async ({ hotplugBytes = 0 }) => hotplugBytes > 0 ? 'the hypervisor firecracker cannot plug memory into a VM' : undefined,
      key: async (spec) => await keyFor(spec, await launchOptions()),
      restore: async (spec, image, statePath, how) => await restoreVm(spec, image, statePath, await launchOptions(), how)
    },
    async attach (handle) {
      const identity = identityOf(DRIVER, handle)
      if (!isAlive(identity)) {
        // Its last threads may still be ending.
        await endProcess(identity)
        await folderOf(handle.directory).removeStale(API_SOCKET)
        return createVm(handle, { status: 'gone' }, vmOptions)
      }
      const vm = createVm(handle, { status: 'hung', reason: 'the VMM has not been asked yet' }, vmOptions)
      await vm.known()
      return vm
    }
  }
}
