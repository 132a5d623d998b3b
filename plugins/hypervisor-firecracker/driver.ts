// The Firecracker driver of the slot `hypervisors`: probe, launch, attach, memory images.
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { createRestDriver, type LaunchOptions, type RestDriverDeps } from '../../core/library/vmm/rest-driver.ts'
import { findJailer } from './jail.ts'
import { keyFor, launchVm, restoreVm, type FirecrackerOptions } from './launch.ts'
import type { HypervisorFirecrackerConfig } from './manifest.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { FIRECRACKER } from './probe.ts'
import { MAX_VCPUS } from './spec.ts'
import { createVm, folderOf } from './vm.ts'

export function createFirecrackerDriver (config: HypervisorFirecrackerConfig, deps: RestDriverDeps): HypervisorDriver {
  let found: ReturnType<typeof findJailer> | undefined

  /** It stays the same for as long as the server runs. */
  async function withJailer (options: LaunchOptions): Promise<FirecrackerOptions> {
    found ??= findJailer(config, deps).catch((error: unknown) => { found = undefined; throw error })
    const jailer = await found
    return typeof jailer === 'string' ? options : { ...options, jailer }
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
