// What other plugins may know of instances. Types only.
import type { HypervisorName, MemoryImage } from '../../core/library/hypervisor.ts'
import type { Compression, CompressionAlgorithm } from '../../core/library/compressed-memory.ts'
import type { GuestLink } from '../guest/contract.ts'

export type InstanceState = 'Created' | 'Initializing' | 'Running' | 'Paused' | 'Shutdown' | 'Stopped' | 'Standby' | 'Unknown'

/** What is known of an instance without asking anybody. */
export interface InstanceFacts {
  readonly id: string
  readonly name: string
  readonly state: InstanceState
  readonly hypervisor: HypervisorName
  readonly imageDigest: string
}

/** `Standby`: disk and memory of one moment. `Stopped`: the disk of an instance without a VM. */
export type CopyKind = 'Standby' | 'Stopped'

/**
 * An instance at one moment, apart from any instance: this, which is plain JSON, and the files of `CopyFiles`. Whoever keeps both keeps the
 * OCI image too (`ImageService.hold` with `imageDigest`).
 */
export interface InstanceCopy {
  readonly version: number
  readonly kind: CopyKind
  readonly sourceId: string
  readonly sourceName: string
  readonly hypervisor: HypervisorName
  /** normalised reference */
  readonly image: string
  readonly imageDigest: string
  /** what the instance was created with; for this plugin alone */
  readonly spec: unknown
  /** present for `Standby` */
  readonly memory?: MemoryImage
}

/** Where the files of a copy are. Whoever calls sees to it that nobody changes or removes them meanwhile. */
export interface CopyFiles {
  /** writable disk, sparse */
  readonly overlay: string
  /** folder of the writable disks of volumes with an overlay; there when the instance had any */
  readonly volumes: string
  /** devices and processors; only of a `Standby` copy */
  readonly state: string
  /** memory, sparse or compressed; only of a `Standby` copy */
  readonly memory: StoredMemory
}

/** Memory of an image in a file. */
export interface StoredMemory {
  readonly path: string
  /** absent: as it is, and sparse */
  readonly algorithm?: CompressionAlgorithm
}

export interface CopyRequest {
  /** `undefined`: `Running` for a `Standby` copy, `Stopped` for a `Stopped` one */
  readonly targetState?: 'Stopped' | 'Standby' | 'Running'
  /** only for a `Stopped` copy */
  readonly hypervisor?: HypervisorName
}

/**
 * Copies of instances that outlive them. `ref` is an id, a name, or the beginning of an id, as in every route. Each call holds the
 * instance's lock as long as it has to. The answers named `view` are the API's `Instance`.
 */
export interface InstanceCopies {
  /** @throws not_found, ambiguous */
  find (ref: string): InstanceFacts
  /** The compression that holds for images of this instance: what the request says, else the instance's policy, else the server's. `undefined`: none. @throws invalid_snapshot_policy */
  compression (ref: string, asked: { readonly enabled: boolean, readonly algorithm?: CompressionAlgorithm, readonly level?: number } | undefined): Compression | undefined
  /**
   * Writes the files of a copy, none of which may exist. A running instance is paused for that and goes on, whatever happens; one in standby stays so. Not synced.
   * Removes its files again when it fails.
   * @throws invalid_state (Standby needs Running or Standby, Stopped needs Stopped), not_supported, insufficient_resources (the disk is full)
   */
  capture (ref: string, kind: CopyKind, files: CopyFiles): Promise<InstanceCopy>
  /** A new instance made of a copy, which stays as it is; any number at a time. @throws name_conflict, invalid_request, not_supported, … */
  fork (copy: InstanceCopy, files: CopyFiles, request: CopyRequest & { readonly name: string }): Promise<unknown>
  /**
   * Puts an instance back to where the copy was taken from it: disk and memory are replaced, id, name, address and user stay.
   * A crash in between leaves it as it was before, or as it is after.
   * @throws invalid_state unless it is Stopped or in Standby; invalid_request when the copy is of another instance
   */
  restore (ref: string, copy: InstanceCopy, files: CopyFiles, request: CopyRequest): Promise<unknown>
}

/** What a VM is to be that does work for another plugin. */
export interface WorkerRequest {
  /** as of any instance: unique */
  readonly name: string
  readonly image: string
  /** the program; it should last until the VM is removed */
  readonly argv: readonly string[]
  readonly vcpus: number
  readonly memoryBytes: number
  /** `none`: no network device; `direct`: as an instance without a policy; else mediated by the egress proxy, whose authority the guest trusts */
  readonly network: 'none' | 'direct' | 'all' | 'http_https_only'
  /** writable ones, which belong to the plugin that asks (`VolumeService.create`) */
  readonly volumes: readonly { readonly volumeId: string, readonly mountPath: string }[]
  readonly volumeOwner: string
  readonly tags: Readonly<Record<string, string>>
}

/** VMs that work for other plugins. Each is an instance that the API shows like any other; only its volumes are out of callers' reach. */
export interface InstanceWorkers {
  /** Returns once the VM is launched. @throws as a create does: insufficient_resources, image_not_ready, image_failed, name_conflict, … */
  create (request: WorkerRequest): Promise<{ readonly id: string }>
  /** The conversation with its guest, whose program runs. @throws not_found, invalid_state (it has ended), agent_unavailable after `waitMs` */
  link (id: string, waitMs: number, signal: AbortSignal): Promise<GuestLink>
  /** Ends it at once and removes all of it; by id or name. Idempotent. */
  remove (ref: string): Promise<void>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly workers: InstanceWorkers
    readonly instanceCopies: InstanceCopies
  }
}

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    'instance.state': { readonly id: string, readonly from: InstanceState, readonly to: InstanceState }
    'instance.deleted': { readonly id: string }
  }
}
