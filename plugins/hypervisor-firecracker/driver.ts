// The Firecracker driver of the slot `hypervisors`: probe, launch, attach, memory images.
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { createRestDriver, type LaunchOptions, type RestDriverDeps } from '../../core/library/vmm/rest-driver.ts'
import type { RestVmmConfig } from '../../core/library/vmm/settings.ts'
import type { Jailer } from './jail.ts'
import { keyFor, launchVm, restoreVm, type FirecrackerOptions } from './launch.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { FIRECRACKER } from './probe.ts'
import { MAX_VCPUS } from './spec.ts'
import { createVm, folderOf } from './vm.ts'

/** @param jailer what each Firecracker is started by, or why it is started without one */
export function createFirecrackerDriver (config: RestVmmConfig, deps: RestDriverDeps, jailer: () => Promise<Jailer | string>): HypervisorDriver {
  async function withJailer (options: LaunchOptions): Promise<FirecrackerOptions> {
    const found = await jailer()
    return typeof found === 'string' ? options : { ...options, jailer: found }
  }

  return createRestDriver(config, deps, {
    driver: DRIVER,
    vmm: FIRECRACKER,
    features: ['disk-io-limit'],
    mostVcpus: MAX_VCPUS,
    api: API_SOCKET,
    folderOf,
    createVm,
    launch: async (spec, options, signal) => await launchVm(spec, await withJailer(options), signal),
    keyFor,
    // Up to 1.16.1 no device of it can be reset.
    disksStayBound: true,
    restore: async (spec, image, statePath, options, how) => await restoreVm(spec, image, statePath, await withJailer(options), how)
  })
}
