// What an instance asks for of the host's devices, and what it gets. Types only.

/** The devices of the host that an instance is to have. */
export interface DeviceClaim {
  /** ids */
  readonly deviceIds: readonly string[]
  /** a mediated device, which is made for the instance */
  readonly gpu?: { readonly profile: string, readonly mdevUuid: string }
}

/** The user of a VM. */
export interface DeviceUser { readonly uid: number, readonly gid: number }

/** A device that is ready for a VM. */
export interface OpenDevice {
  /** absolute path of its folder below the devices of a bus in sysfs */
  readonly sysfs: string
}
