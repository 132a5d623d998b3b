// What other plugins may know of instances, and what they bring to one. Types only.
import type { HypervisorDriver, MemoryImage, VmSpec } from '../../core/library/hypervisor.ts'
import type { Compression, CompressionAlgorithm } from '../../core/library/compressed-memory.ts'
import type { GuestLink } from '../guest/contract.ts'
import type { InstanceRecord, InstanceSpec, Source } from './model/record.ts'
import type { Asked, InstanceRequest } from './model/request.ts'
import type { MediatedMode } from '../../proxy/contract/modes.ts'

export type { InstanceSpec }
export type { PortSpec, Source } from './model/record.ts'
export type { InstanceRequest }

export type InstanceState = 'Created' | 'Initializing' | 'Running' | 'Paused' | 'Shutdown' | 'Stopped' | 'Standby' | 'Unknown'

/** What is known of an instance without asking anybody. */
export interface InstanceFacts {
  readonly id: string
  readonly name: string
  readonly state: InstanceState
  readonly hypervisor: string
  readonly imageDigest: string
  /** whether it works for another plugin */
  readonly isWorker: boolean
}

/** `Standby`: disk and memory of one moment. `Stopped`: the disk of an instance without a VM. */
export type CopyKind = 'Standby' | 'Stopped'

/**
 * A copy of an instance at one moment: this description, which is plain JSON, and the files of `CopyFiles`. Whoever keeps both must keep the
 * OCI image too (`ImageService.hold` with `imageDigest`).
 */
export interface InstanceCopy {
  readonly version: number
  readonly kind: CopyKind
  readonly sourceId: string
  readonly sourceName: string
  readonly hypervisor: string
  /** normalised reference */
  readonly image: string
  readonly imageDigest: string
  /** what the instance was created with; for this plugin alone */
  readonly spec: unknown
  /** present for `Standby` */
  readonly memory?: MemoryImage
}

/** Where the files of a copy are. The caller sees to it that nobody changes or removes them meanwhile. */
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
  /** absent: uncompressed, and sparse */
  readonly algorithm?: CompressionAlgorithm
  /** a file of what differs from that file; absent: nothing does */
  readonly changes?: string
}

export interface CopyRequest {
  /** `undefined`: `Running` for a `Standby` copy, `Stopped` for a `Stopped` one */
  readonly targetState?: 'Stopped' | 'Standby' | 'Running'
  /** only for a `Stopped` copy */
  readonly hypervisor?: string
}

export interface ForkRequest extends CopyRequest, Asked {
  readonly name: string
  /** what the instance says that it was made of; absent: the instance that was copied */
  readonly source?: Source
  /** in place of those that the source had */
  readonly tags?: Readonly<Record<string, string>>
  /** in place of the source's variables of these names, and beside its others */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Copies of instances that outlive them. `ref` is an id, a name, or the beginning of an id, as in every route. Each call holds the
 * instance's lock as long as it has to. The answers named `view` are the API's `Instance`.
 */
export interface InstanceCopies {
  /** @throws not_found, ambiguous */
  find (ref: string): InstanceFacts
  /** The same for a `call` of the API. @throws not_found, ambiguous, and Forbidden for an instance that works for a plugin */
  findOwn (call: string, ref: string): InstanceFacts
  /** The compression that holds for images of this instance: what the request says, else the instance's policy, else the server's. `undefined`: none. @throws invalid_snapshot_policy */
  compression (ref: string, asked: { readonly enabled: boolean, readonly algorithm?: CompressionAlgorithm, readonly level?: number } | undefined): Compression | undefined
  /**
   * Writes the files of a copy, none of which may exist. A running instance is paused for that and goes on, whatever happens; one in standby stays so. Not synced.
   * Removes its files again when it fails.
   * @throws invalid_state (Standby needs Running or Standby, Stopped needs Stopped), not_supported, insufficient_resources (the disk is full)
   */
  capture (ref: string, kind: CopyKind, files: CopyFiles): Promise<InstanceCopy>
  /** A new instance made of a copy, which stays as it is; any number at a time. @throws name_conflict, invalid_request, not_supported, … */
  fork (copy: InstanceCopy, files: CopyFiles, request: ForkRequest): Promise<unknown>
  /** A copy that was forked is about to go away, or to change its place: what is kept ready for further forks ends. Nobody has to wait for that; the files may go at once. */
  forget (files: CopyFiles): void
  /**
   * Puts an instance back to where the copy was taken from it: disk and memory are replaced, id, name, address and user stay.
   * A crash in between leaves it as it was before, or as it is after.
   * @throws invalid_state unless it is Stopped or in Standby; invalid_request when the copy is of another instance
   */
  restore (ref: string, copy: InstanceCopy, files: CopyFiles, request: CopyRequest): Promise<unknown>
}

/** A reason to keep an instance awake. */
export interface Lease {
  /** Idempotent. */
  release (): void
}

/**
 * Leases keep instances awake. While a lease of an instance is held, the instance does not go to standby by itself; its idle time begins anew with the last release. A standby that is asked for by hand is done all the same.
 * Nothing is stored: leases end with the server.
 */
export interface InstanceLeases {
  /** May also be taken for an instance that sleeps, before it is woken. @param id of the instance @param reason what is shown, such as `exec` or `port 8080` */
  take (id: string, reason: string): Lease
}

/** What a VM that works for another plugin is to be. */
export interface WorkerRequest {
  /** as of any instance: unique */
  readonly name: string
  readonly image: string
  /** the program; it should last until the VM is removed */
  readonly argv: readonly string[]
  readonly vcpus: number
  readonly memoryBytes: number
  /** `none`: no network device; `direct`: as an instance without a policy; else mediated by the egress proxy, whose authority the guest trusts */
  readonly network: 'none' | 'direct' | MediatedMode
  /** writable ones, which belong to the plugin that asks (`VolumeService.create`) */
  readonly volumes: readonly { readonly volumeId: string, readonly mountPath: string }[]
  readonly volumeOwner: string
  readonly tags: Readonly<Record<string, string>>
}

/** VMs that work for other plugins. Each is an instance that the API shows like any other; only its volumes are out of callers' reach. */
export interface InstanceWorkers {
  /** Returns once the VM is launched. @throws as a create does: insufficient_resources, image_not_ready, image_failed, name_conflict, … */
  create (request: WorkerRequest): Promise<{ readonly id: string }>
  /** The link to its guest, once its program runs. @throws not_found, invalid_state (it has ended), agent_unavailable after `waitMs` */
  link (id: string, waitMs: number, signal: AbortSignal): Promise<GuestLink>
  /** Ends it at once and removes all of it; by id or name. Idempotent. */
  remove (ref: string): Promise<void>
  /** The values that workers have of a tag, those included that an earlier server has left. */
  tagged (tag: string): readonly string[]
}

/** Where an instance that is awake can be reached. */
export interface Woken {
  /** IPv4; undefined when it has no network */
  readonly address: string | undefined
}

/** For plugins that take calls in the name of an instance. */
export interface InstanceWaking {
  /**
   * Returns when the program of an instance runs; at once when it runs already. An instance in Standby is restored, once for all who wait for it, and a Stopped one is started if its `wake` says
   * `always`. A caller with connections to the instance takes a lease as well, before this.
   * @param id of the instance; no name
   * @param options `caller`: the address of the client; clients take turns, and each may hold a limited number of places. `port`: an instance that was just woken has some seconds to listen at it
   * @throws not_found, cannot_be_woken with the reason, too_many_waiting, wake_timeout; the signal's reason: only this caller leaves then
   */
  wake (id: string, options: { readonly signal: AbortSignal, readonly caller: string, readonly port?: number }): Promise<Woken>
}

type HypervisorFeature = NonNullable<HypervisorDriver['features']>[number]

/**
 * Whom a part is reserved for. `resting`: an instance without a VM; `running`: one that gets a VM right away; `hidden`: a VM of the server's own, which must take
 * nothing from instances.
 */
export type Purpose = 'resting' | 'running' | 'hidden'

/** How a copy is used. */
export interface CopyWay {
  /** the call, for the texts of errors */
  readonly call: string
  /** with the memory, or the disk alone */
  readonly withMemory: boolean
}

/** Which memory image is to be made of a VM. `none`: its disk alone is copied; `own`: one that only the instance itself goes on from; `copied`: one that others may go on from. */
export type ImageUse = 'none' | 'own' | 'copied'

/** What a part may know of an instance. */
export interface PartInstance extends Pick<InstanceRecord, 'id' | 'name' | 'status' | 'spec' | 'handle'> {
  /** that its VM runs as; undefined when it is the server's own */
  readonly user: { readonly uid: number, readonly gid: number } | undefined
}

/** What a part may ask of the instances plugin; only from `adopted` on. */
export interface PartHost {
  readonly waking: InstanceWaking
  readonly leases: InstanceLeases
  /** @throws not_found, ambiguous */
  find (ref: string): InstanceFacts
  /** Does work on an instance with its lock held, so that nobody else changes it. Not from within a step of a part. @throws not_found, and Forbidden for one that works for a plugin */
  hold<T> (id: string, work: (instance: PartInstance) => Promise<T>): Promise<T>
}

/** What a part adds to a VM. */
export type VmShare = Partial<Pick<VmSpec, 'devices' | 'disks' | 'groups' | 'network'>>

/**
 * Something that an instance holds. A part leaves out the steps in which it has nothing to do, and does nothing in any of them for an instance without it.
 *
 * The server may be killed before, in and after each step. What is held is therefore stored by whoever gives it (the part's own plugin), under the id of the instance,
 * and the row of the instance is stored before it and removed after it: the next start compares the two (`retain`).
 */
export interface InstancePart {
  /** of a built-in part: the id of its plugin, by which fields of requests find it */
  readonly name: string
  /** its place in the list: lower ones are reserved and connected first, and released last */
  readonly rank: number
  /** VMs of the server's own hold it as well: when none is left, such a VM is given up for an instance. */
  readonly heldByHidden?: boolean
  /** Reserved when a VM that was made ahead becomes an instance. Parts without this are not reserved then, since that VM holds them already, or the instance must boot by itself. */
  readonly reservedAtClaim?: boolean
  /** Disconnecting may go on behind the answer to a standby. `connect` and `release` then wait for it (`context.behind`). */
  readonly lags?: boolean

  /** Once, before all other steps. */
  introduce? (host: PartHost): void
  /** What a create asks of this part, as fields of the spec; empty when it asks for nothing. The shape of the request is right. Pure. @throws invalid_request */
  wanted? (request: InstanceRequest): Partial<InstanceSpec>
  /** Fields of the spec that are this part's, named as in requests, and the feature that a hypervisor must have for an instance with any of them: at a create, and when an instance gets another hypervisor. */
  readonly needs?: { readonly feature: HypervisorFeature, readonly fields: readonly (keyof InstanceSpec)[] }
  /** Whether the VM of such an instance must boot by itself, since no VM that was made ahead can become it. Pure. */
  mustBoot? (spec: Partial<InstanceSpec>): boolean

  /** At a create, before anything is made: the spec with ids in place of the names that the caller used. @throws not_found, ambiguous, invalid_request, PluginDisabled */
  resolve? (spec: InstanceSpec): Promise<InstanceSpec>
  /** The spec for an instance that is made of a copy. @throws what forbids the call, conflict, not_supported */
  forCopy? (spec: InstanceSpec, how: CopyWay): Promise<InstanceSpec>
  /** The spec of an instance that is taken back to a copy of it: `then`, with what the instance keeps of `now`. Pure. @throws conflict, not_supported */
  forReplacement? (now: InstanceSpec, then: InstanceSpec, how: CopyWay): InstanceSpec
  /** Before an instance is copied, or its VM captured. Pure. @throws invalid_state, not_supported: what the part has to say against it */
  requireCapturable? (call: string, instance: Pick<PartInstance, 'name' | 'spec'>, image: ImageUse): void
  /**
   * For a new row, in the order of the list: the instance holds it until `release`.
   * @throws what the caller is told, such as insufficient_resources, PluginDisabled or a conflict; nothing is held then
   */
  reserve? (instance: PartInstance, purpose: Purpose): Promise<void>
  /**
   * Before anything is done for another VM of an instance, whose last VM has ended: whether there may be one. `disconnect` takes it back. Not called for the VM of a row that was
   * reserved as `running`.
   * @throws what the caller is told, insufficient_resources as a rule; nothing has changed then
   */
  admit? (instance: PartInstance): Promise<void>
  /**
   * Before each VM, in the order of the list, beside the work on its files: makes the part ready for the VM's user. Replaces what an earlier VM has left.
   * @throws what the caller is told, PluginDisabled when the part's plugin was turned off since; the caller then calls `disconnect`, or `release`
   */
  connect? (instance: PartInstance): Promise<VmShare>
  /**
   * After the end of a VM, and for one that was never started; all parts at the same time. Afterwards no VM can reach the part, and the instance still holds it.
   * Idempotent. Never rejects: what could not be done is logged, and done by the next `connect`, `release` or start of the server.
   */
  disconnect? (instance: PartInstance): Promise<void>
  /**
   * In place of `disconnect`, after the standby of an instance whose VM stays paused for a while (hot-standby/). Afterwards nothing reaches that VM, and it counts for nothing; `resume` takes this back. Never
   * rejects. Absent: `disconnect`, and `connect` before the VM goes on. The end of the VM is followed by `disconnect` in either case.
   */
  suspend? (instance: PartInstance): Promise<void>
  /** Before that same VM goes on, after `admit`. @throws when it cannot: another VM is started then, as after any standby */
  resume? (instance: PartInstance): Promise<void>
  /**
   * Before the row is removed, in reverse order, when the VM has ended. Afterwards the instance does not hold the part, and nothing of it is connected. Idempotent; also called for what was never reserved or connected.
   * @throws when it could not be done: the row stays then, and with it the duty to release
   */
  release? (instance: PartInstance): Promise<void>
  /**
   * At the start of the server, when the VMs that no row knows have ended, and before any VM is taken over. Afterwards only these instances hold the part, and they hold what their rows say.
   * Never rejects: what could not be done is logged.
   */
  retain? (instances: readonly PartInstance[]): Promise<void>
  /** At the start of the server, in reverse order, once the VMs that run are taken over. Afterwards these are connected, and no other instance is. Never rejects. */
  adopted? (): Promise<void>
}

declare module '../../core/plugins/manifest.ts' {
  interface Slots {
    /** by the id of the plugin that brings it */
    readonly instanceParts: ReadonlyMap<string, InstancePart>
  }
  interface Cradle {
    readonly workers: InstanceWorkers
    readonly leases: InstanceLeases
    readonly waking: InstanceWaking
    readonly instanceCopies: InstanceCopies
  }
}

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    'instance.state': { readonly id: string, readonly from: InstanceState, readonly to: InstanceState }
    'instance.deleted': { readonly id: string }
  }
}
