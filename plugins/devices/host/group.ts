// The rule of IOMMU groups: devices of one group can reach each other's memory, so a group has one owner or none.
import { NotAssignable } from '../errors.ts'
import { isBridge, isSameDevice, readDevice, type PciDevice } from './pci.ts'
import type { Sysfs } from './sysfs.ts'

/**
 * The functions that must leave their drivers before `device` can be given to a VM: those of the same device in its group, with `device` itself.
 * @throws device_not_assignable with the reason
 */
export async function assignable (sysfs: Sysfs, device: PciDevice): Promise<readonly PciDevice[]> {
  const { address, iommuGroup } = device
  if (isBridge(device)) throw NotAssignable(address, 'it is a bridge, which other devices are reached by')
  if (iommuGroup === undefined) throw NotAssignable(address, 'it is in no IOMMU group; the IOMMU must be turned on in the firmware and in the kernel (intel_iommu=on or amd_iommu=on)')
  if (device.virtualFunctions > 0) throw NotAssignable(address, `it has ${device.virtualFunctions} virtual functions, which would go with it; register one of them`)
  const members = await readMembers(sysfs, iommuGroup, device)
  const functions = members.filter((member) => member.address === address || (!isBridge(member) && isSameDevice(member, device)))
  const others = members.filter((member) => !isBridge(member) && !functions.includes(member)).map((member) => member.address)
  if (others.length > 0) throw NotAssignable(address, `its IOMMU group ${iommuGroup} holds other devices as well (${others.join(', ')}), which could be reached through it`)
  return functions
}

async function readMembers (sysfs: Sysfs, group: number, device: PciDevice): Promise<readonly PciDevice[]> {
  const addresses = await sysfs.list(`kernel/iommu_groups/${group}/devices`)
  const members = await Promise.all(addresses.map(async (address) => {
    const member = address === device.address ? device : await readDevice(sysfs, address)
    // A member that nothing is known of may be any device.
    if (member === undefined) throw NotAssignable(device.address, `its IOMMU group ${group} holds ${address}, which the host says nothing about`)
    return member
  }))
  if (!members.includes(device)) throw NotAssignable(device.address, `the host does not count it among the members of its IOMMU group ${group}`)
  return members
}
