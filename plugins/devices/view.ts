// Devices as JSON: what is stored, with what the host says about them now.
import type { PciNames } from './host/names.ts'
import { VFIO_DRIVER, type PciDevice } from './host/pci.ts'
import type { DeviceRecord } from './record.ts'
import type { AvailableDevice, DeviceView } from './schemas.ts'

/** @param now undefined when the host does not have it any more */
export function deviceView (record: DeviceRecord, now: PciDevice | undefined): DeviceView {
  const { id, name, type, pciAddress, vendorId, deviceId, iommuGroup, tags, createdAt, instanceId } = record
  return {
    id,
    name,
    type,
    pci_address: pciAddress,
    vendor_id: vendorId,
    device_id: deviceId,
    iommu_group: now?.iommuGroup ?? iommuGroup,
    bound_to_vfio: now?.driver === VFIO_DRIVER,
    attached_to: instanceId,
    created_at: new Date(createdAt).toISOString(),
    ...(Object.keys(tags).length === 0 ? {} : { tags: { ...tags } })
  }
}

export function availableView ({ address, vendorId, deviceId, iommuGroup = 0, driver }: PciDevice, names: PciNames): AvailableDevice {
  const [vendor, device] = [names.vendor(vendorId), names.device(vendorId, deviceId)]
  return {
    pci_address: address,
    vendor_id: vendorId,
    device_id: deviceId,
    iommu_group: iommuGroup,
    ...(vendor === undefined ? {} : { vendor_name: vendor }),
    ...(device === undefined ? {} : { device_name: device }),
    current_driver: driver ?? null
  }
}
