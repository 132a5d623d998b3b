// What is stored of devices.

export type DeviceType = 'gpu' | 'pci'

/** The group of a device that is in none now, or is no longer on the host: the number that it had may be another's by now. */
export const NO_GROUP = -1

export interface DeviceRecord {
  readonly id: string
  readonly name: string
  readonly type: DeviceType
  readonly pciAddress: string
  readonly vendorId: string
  readonly deviceId: string
  /** as last seen, or `NO_GROUP`; the host may number its groups otherwise after its next start */
  readonly iommuGroup: number
  readonly tags: Readonly<Record<string, string>>
  /** epoch `ms` */
  readonly createdAt: number
  /** the instance that has it; null: none */
  readonly instanceId: string | null
}

/** A PCI function that is taken from its driver for an instance. Stored before it is taken, so that it can be given back after a crash. */
export interface Binding {
  readonly pciAddress: string
  readonly instanceId: string
  /** the driver that it had; null: none */
  readonly driver: string | null
}

/** A mediated device that was made for an instance, or is about to be made. */
export interface Mdev {
  readonly uuid: string
  readonly instanceId: string
  readonly profile: string
  /** PCI address of the device that this one is a share of */
  readonly parent: string
}
