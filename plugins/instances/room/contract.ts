// What instances, and whoever else takes something of the host, ask of the plugin that keeps count of it (resources). Types only.

/** What somebody takes of the host. */
export interface ResourceClaim {
  readonly kind: 'instance' | 'volume'
  readonly id: string
  readonly name: string
  /** whether there is a VM: what only a VM takes counts for as long as there is one, and `diskBytes` always */
  readonly active: boolean
  readonly vcpus: number
  readonly memoryBytes: number
  readonly diskBytes: number
  /** bytes per second; 0: nothing that is known */
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
  /** Bytes per second of an instance that names no limit for its disks: its share by vCPU; `undefined` where no capacity is configured. */
  defaultDiskIoBps (vcpus: number): number | undefined
  /** The same for its network, in each direction of which the host's rate is known, configured or told by the kernel. */
  defaultBandwidth (vcpus: number): { readonly downloadBps?: number, readonly uploadBps?: number }
  /**
   * Takes note of a claim, or of what has become of it; with a VM, its control group is there afterwards. Only what grows is asked after.
   * @throws insufficient_resources naming what is short; nothing is changed then
   */
  claim (claim: ResourceClaim): Promise<void>
  /** The VM of an instance has ended: its disks still count, and its control group is gone. Idempotent. @param keepGroup when it has not ended: it is paused, and does not count */
  rest (id: string, keepGroup?: boolean): Promise<void>
  /** Memory that nobody has a claim to, bytes. */
  memoryLeft (): Promise<number>
  /** Has it say in its overview what is kept without a claim, and given up when somebody needs room. */
  noteKept (look: () => KeptMemory): void
  /** Forgets a claim. Idempotent. @param keepGroup when its VM has not ended */
  release (kind: ResourceClaim['kind'], id: string, keepGroup?: boolean): Promise<void>
  /**
   * Makes these all the claims of their kind on this host, without asking whether there is room: for whoever knows what there is, at its start.
   * Control groups of VMs that are not among them go.
   */
  retainOnly (kind: ResourceClaim['kind'], claims: readonly ResourceClaim[]): Promise<void>
  /**
   * Makes the control group of a VM that claims nothing, one of the server's own, or that runs already. `rest` and `release` remove it. Never rejects.
   * @param pid of a VMM that is to be in it
   */
  enclose (id: string, vm: Pick<ResourceClaim, 'vcpus' | 'memoryBytes'>, pid?: number): Promise<void>
  /** The folders of a VM's control group, to which its VMM is to be added; none when there is no such group. */
  groupsOf (id: string): readonly string[]
  cgroups (): CgroupState
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly resources: ResourceService
  }
}
