// What other plugins may know of devices of the host. Types only.

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

/** GPUs of the host: whole ones that are registered, and shares of such as can be shared. */
export interface GpuUsage {
  readonly mode: 'vgpu' | 'passthrough'
  readonly totalSlots: number
  readonly usedSlots: number
  readonly profiles: readonly { readonly name: string, readonly framebufferMb: number, readonly available: number }[]
  readonly devices: readonly { readonly name: string, readonly available: boolean }[]
}

/**
 * A device is attached to one instance from `attach` to `release`, whatever state the instance is in, and bound to vfio-pci all the while. The database decides who has it,
 * so that neither a crash nor another call can make two owners.
 */
export interface DeviceService {
  /** The id of each, given by id or name. @throws not_found naming the field `devices[n]`, invalid_request for one that is there twice */
  resolve (refs: readonly string[]): Promise<readonly string[]>
  /**
   * Makes the devices an instance's: all of them or none. They are taken from their drivers, and the mediated device is made.
   * @throws not_found, device_in_use, device_not_assignable, invalid_request (no GPU of the host has such a profile), insufficient_resources (none is left)
   */
  attach (instanceId: string, claim: DeviceClaim): Promise<void>
  /**
   * Makes the devices of an instance ready for a VM of this user (`undefined`: the server's own), also after a restart of the host: to be called before each VM. Idempotent.
   * @returns those of `claim.deviceIds` in that order, then the mediated device
   */
  open (instanceId: string, claim: DeviceClaim, user: DeviceUser | undefined): Promise<readonly OpenDevice[]>
  /** Takes from the VM's user what `open` gave it; the VM must have ended. Idempotent. */
  close (instanceId: string): Promise<void>
  /** Gives everything back: devices to their drivers, the mediated device is removed. No VM may use them. Idempotent. */
  release (instanceId: string): Promise<void>
  /** Gives back what instances have that are not among these. An earlier server may have been killed in between. For whoever knows the instances, at its start. */
  retainOnly (instanceIds: ReadonlySet<string>): Promise<void>
  /** null when the host has no GPU that an instance could have */
  gpus (): Promise<GpuUsage | null>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly devices: DeviceService
  }
}
