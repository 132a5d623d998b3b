// What is stored of devices. Types only.

export type DeviceType = 'gpu' | 'pci'

export interface DeviceRecord {
  readonly id: string
  readonly name: string
  readonly type: DeviceType
  readonly pciAddress: string
  readonly vendorId: string
  readonly deviceId: string
  /** as it was last seen; another start of the host may number them otherwise */
  readonly iommuGroup: number
  readonly tags: Readonly<Record<string, string>>
  /** epoch `ms` */
  readonly createdAt: number
  /** whose it is; null: nobody's */
  readonly instanceId: string | null
}

/** A PCI function that was taken from its driver for an instance. Stored before it is, so that the way back is known after a crash. */
export interface Binding {
  readonly pciAddress: string
  readonly instanceId: string
  /** the driver that it had; null: none */
  readonly driver: string | null
}

/** A mediated device that was made for an instance, or is about to be. */
export interface Mdev {
  readonly uuid: string
  readonly instanceId: string
  readonly profile: string
  /** PCI address of the device that it is a share of */
  readonly parent: string
}
