// What sysfs says about the PCI devices of the host.
import type { DeviceType } from '../record.ts'
import { slotOf } from '../address.ts'
import type { Sysfs } from './sysfs.ts'

export const PCI_DEVICES = 'bus/pci/devices'
export const VFIO_DRIVER = 'vfio-pci'

/** classes of bridges and of display controllers: the first byte of three */
const BRIDGE = 0x06
const DISPLAY = 0x03

export interface PciDevice {
  readonly address: string
  /** four hex digits */
  readonly vendorId: string
  readonly deviceId: string
  /** first byte of its class */
  readonly baseClass: number
  readonly type: DeviceType
  /** undefined when no IOMMU guards it */
  readonly iommuGroup: number | undefined
  readonly driver: string | undefined
  /** of a virtual function: the address of its physical function */
  readonly physicalFunction: string | undefined
  /** how many virtual functions it has at present */
  readonly virtualFunctions: number
}

/** All devices, by address. Devices that sysfs does not tell enough about are left out. */
export async function readDevices (sysfs: Sysfs): Promise<readonly PciDevice[]> {
  const found = await Promise.all((await sysfs.list(PCI_DEVICES)).map(async (address) => await readDevice(sysfs, address)))
  return found.filter((device) => device !== undefined)
}

/** Undefined when there is no such device. */
export async function readDevice (sysfs: Sysfs, address: string): Promise<PciDevice | undefined> {
  const of = (file: string): string => `${PCI_DEVICES}/${address}/${file}`
  const [vendor, device, deviceClass, group, driver, physicalFunction, virtualFunctions] = await Promise.all([
    sysfs.read(of('vendor')), sysfs.read(of('device')), sysfs.read(of('class')), sysfs.target(of('iommu_group')), sysfs.target(of('driver')),
    sysfs.target(of('physfn')), sysfs.read(of('sriov_numvfs'))
  ])
  const [vendorId, deviceId] = [hex(vendor, 4), hex(device, 4)]
  if (vendorId === undefined || deviceId === undefined) return undefined
  const baseClass = Number.parseInt((hex(deviceClass, 6) ?? 'ff0000').slice(0, 2), 16)
  return {
    address,
    vendorId,
    deviceId,
    baseClass,
    type: baseClass === DISPLAY ? 'gpu' : 'pci',
    iommuGroup: group === undefined || !/^\d+$/.test(group) ? undefined : Number(group),
    driver,
    physicalFunction,
    virtualFunctions: /^\d+$/.test(virtualFunctions ?? '') ? Number(virtualFunctions) : 0
  }
}

export function isBridge ({ baseClass }: Pick<PciDevice, 'baseClass'>): boolean {
  return baseClass === BRIDGE
}

/** Whether two functions are one device: a reset, for example, affects both. A virtual function is a device of its own. */
export function isSameDevice (one: PciDevice, other: PciDevice): boolean {
  return slotOf(one.address) === slotOf(other.address) && one.physicalFunction === undefined && other.physicalFunction === undefined
}

function hex (text: string | undefined, digits: number): string | undefined {
  const [, found] = /^(?:0x)?([0-9a-f]+)$/i.exec(text ?? '') ?? []
  return found?.length === digits ? found.toLowerCase() : undefined
}
