// What instances, and other plugins that take something of the host, ask of the plugin that counts it (resources). Types only.

/** What somebody takes of the host. */
export interface ResourceClaim {
  readonly kind: 'instance' | 'volume'
  readonly id: string
  readonly name: string
  /** whether there is a VM: what only a VM takes counts while this is true; `diskBytes` counts always */
  readonly active: boolean
  readonly vcpus: number
  readonly memoryBytes: number
  readonly diskBytes: number
  /** bytes per second; 0: unknown */
  readonly downloadBps: number
  readonly uploadBps: number
  readonly diskIoBps: number
}

/** Whether VMMs are kept within limits by the host's kernel, and why not. */
export interface CgroupState {
  readonly active: boolean
  readonly version?: 1 | 2
  /** those that are limited */
  readonly controllers?: readonly ('cpu' | 'memory' | 'pids')[]
  /** one sentence: why there are none, or not all */
  readonly reason?: string
}

/** Paused VMs of instances in standby (hot-standby/). */
export interface KeptMemory {
  readonly vms: number
  /** of their guests */
  readonly memoryBytes: number
}

export interface ResourceService {
  /** The share by vCPU of an instance that names no limit for its disks, in bytes per second; `undefined` where no capacity is configured. */
  defaultDiskIoBps (vcpus: number): number | undefined
  /** The same for the network, in each direction whose rate is known, by the configuration or from the kernel. */
  defaultBandwidth (vcpus: number): { readonly downloadBps?: number, readonly uploadBps?: number }
  /**
   * Stores a claim, or a change of one. With a VM, its control group exists afterwards. Only growth is checked against the room.
   * @throws insufficient_resources naming what is short; nothing has changed then
   */
  claim (claim: ResourceClaim): Promise<void>
  /** The VM of an instance has ended: its disks still count, and its control group is removed. Idempotent. @param keepGroup true when the VM is paused instead: it does not count, and keeps its group */
  rest (id: string, options?: { readonly keepGroup?: boolean }): Promise<void>
  /** The disks of an instance have become smaller. What else it claims stays as it is, whether its VM runs or ends meanwhile; does nothing without a claim. Idempotent. */
  shrink (id: string, diskBytes: number): Promise<void>
  /** Bytes of memory that nobody has claimed. */
  memoryLeft (): Promise<number>
  /** Sets the function that tells the overview which memory is kept without a claim, and given up when somebody needs room. */
  noteKept (look: () => KeptMemory): void
  /** Forgets a claim. Idempotent. @param keepGroup when its VM has not ended */
  release (kind: ResourceClaim['kind'], id: string, options?: { readonly keepGroup?: boolean }): Promise<void>
  /**
   * Replaces all claims of one kind on this host by these, without asking whether there is room. For a plugin that knows them, at its start.
   * Control groups of VMs that are not among them go.
   */
  retainOnly (kind: ResourceClaim['kind'], claims: readonly ResourceClaim[]): Promise<void>
  /**
   * Makes the control group of a VM that claims nothing (a VM of the server's own), or that runs already. `rest` and `release` remove it. Never rejects.
   * @param pid of a VMM that is to be in it
   */
  enclose (id: string, vm: Pick<ResourceClaim, 'vcpus' | 'memoryBytes'>, pid?: number): Promise<void>
  /** The folders of a VM's control group, to which its VMM is to be added; empty when there is no such group. */
  groupsOf (id: string): readonly string[]
  cgroups (): CgroupState
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly resources: ResourceService
  }
}
