// The Cloud Hypervisor driver of the slot `hypervisors`: probe, launch, attach, memory images.
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { createRestDriver, type RestDriverDeps } from '../../core/library/vmm/rest-driver.ts'
import { keyFor, launchVm, restoreVm } from './launch.ts'
import type { HypervisorCloudHypervisorConfig } from './manifest.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { CLOUD_HYPERVISOR } from './probe.ts'
import { MAX_VCPUS } from './spec.ts'
import { createVm, folderOf } from './vm.ts'

export function createCloudHypervisorDriver (config: HypervisorCloudHypervisorConfig, deps: RestDriverDeps): HypervisorDriver {
  return createRestDriver(config, deps, {
    driver: DRIVER,
    vmm: CLOUD_HYPERVISOR,
    features: ['disk-io-limit', 'host-devices', 'removable-disks', 'balloon-control'],
    mostVcpus: MAX_VCPUS,
    api: API_SOCKET,
    folderOf,
    createVm,
    launch: launchVm,
    keyFor,
    restore: restoreVm
  })
}
