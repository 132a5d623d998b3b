// What is asked of the devices of the host for one instance, and what is given. Types only.

/** What an instance is to have of the host's devices. */
export interface DeviceClaim {
  /** ids */
  readonly deviceIds: readonly string[]
  /** a mediated device that is made for it */
  readonly gpu?: { readonly profile: string, readonly mdevUuid: string }
}

/** The user of a VM. */
export interface DeviceUser { readonly uid: number, readonly gid: number }

/** A device that is ready for a VM. */
export interface OpenDevice {
  /** absolute path of its folder below the devices of a bus in sysfs */
  readonly sysfs: string
}
