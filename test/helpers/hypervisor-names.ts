// The names of the hypervisors that this checkout has a driver for: a plugin `hypervisor-<name>` each.
import { builtInFolder, findBuiltIns } from '../../core/plugins/discover.ts'

const PREFIX = 'hypervisor-'

export const hypervisorNames: readonly string[] = [...(await findBuiltIns(builtInFolder)).keys()].flatMap((id) => id.startsWith(PREFIX) ? [id.slice(PREFIX.length)] : [])

/** Whether VMs of this hypervisor are kept ready for creates: one is given its disks while it waits, which Cloud Hypervisor cannot. */
export function hasSpares (hypervisor: string): boolean { return hypervisor !== 'cloud-hypervisor' }
