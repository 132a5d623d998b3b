// The Firecracker driver of the slot `hypervisors`: probe, launch, attach, memory images.
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { createRestDriver, type RestDriverDeps } from '../../core/library/vmm/rest-driver.ts'
import { keyFor, launchVm, restoreVm } from './launch.ts'
import type { HypervisorFirecrackerConfig } from './manifest.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { FIRECRACKER } from './probe.ts'
import { createVm, folderOf } from './vm.ts'

export function createFirecrackerDriver (config: HypervisorFirecrackerConfig, deps: RestDriverDeps): HypervisorDriver {
  return createRestDriver(config, deps, {
    driver: DRIVER,
    vmm: FIRECRACKER,
    features: ['disk-io-limit'],
    api: API_SOCKET,
    folderOf,
    createVm,
    launch: launchVm,
    keyFor,
    // Up to 1.16.1 no device of it can be reset.
    disksStayBound: true,
    restore: restoreVm
  })
}
