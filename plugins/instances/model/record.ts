// What is stored of one instance. Types only; repository.ts turns rows into these and back.
import type { VmHandle } from '../../../core/library/hypervisor.ts'
import type { EgressSpec } from '../egress/contract.ts'
import type { AutoStandbyPolicy } from '../auto-standby/policy.ts'
import type { Lifetime } from '../expiry/expiry.ts'
import type { HealthCheck } from '../health/check.ts'
import type { Life } from '../life/record.ts'
import type { RestartPolicy } from '../restart/policy.ts'
import type { WakePolicy } from '../waking/schemas.ts'

export interface SnapshotPolicy {
  readonly compression?: { readonly enabled: boolean, readonly algorithm?: 'zstd' | 'lz4', readonly level?: number }
  /** Go duration, as it was written */
  readonly standby_compression_delay?: string
}

/** What a request or a policy asks for. */
export type CompressionRequest = NonNullable<SnapshotPolicy['compression']>

/** An instance's place in the network. Only the plugin networking knows its address. */
export interface NetworkSpec {
  readonly enabled: boolean
  /** bytes per second; absent: no limit of its own */
  readonly downloadBps?: number
  readonly uploadBps?: number
}

/** A volume of an instance. */
export interface VolumeSpec {
  readonly volumeId: string
  readonly mountPath: string
  readonly readonly: boolean
  /** size of the instance's own disk for what is written; absent: without overlay */
  readonly overlayBytes?: number
  /** a number that no other volume of the instance has, for as long as the instance has this volume */
  readonly place: number
  /** generation of the volume since it was attached */
  readonly generation: number
  /** the plugin that the volume belongs to; absent: it is a caller's */
  readonly owner?: string
  /** `attaching`: the volume is being given to a VM that runs; `detaching`: it is being taken away */
  readonly pending?: 'attaching' | 'detaching'
}

/** A port of the host that is to lead to the instance. */
export interface PortSpec {
  readonly instance_port: number
  /** absent: one is chosen */
  readonly host_port?: number
  readonly address?: string
  readonly protocol?: 'tcp' | 'udp'
}

/** What an instance was made of: a boot from its image, a template, or a copy of another instance. What it names may be gone by now. */
export interface Source {
  readonly kind: 'image' | 'template' | 'instance' | 'snapshot'
  /** of an image the digest */
  readonly id: string
  /** at that time */
  readonly name?: string
}

/** What the caller asked for, with the defaults filled in. Only `cmd` and `entrypoint` change later. */
export interface InstanceSpec {
  readonly cmd?: readonly string[]
  readonly entrypoint?: readonly string[]
  /** what the guest sees, without the image's own environment */
  readonly env: Readonly<Record<string, string>>
  readonly hypervisor: string
  readonly vcpus: number
  readonly memoryBytes: number
  readonly overlayBytes: number
  /** memory that is plugged in beside `memoryBytes`; absent: none */
  readonly hotplugBytes?: number
  /** most bytes per second of all disks together; absent: no limit */
  readonly diskIoBps?: number
  readonly skipGuestAgent: boolean
  readonly skipKernelHeaders: boolean
  /** name of the disk that its VM got at its last boot; absent: none */
  readonly kernelHeaders?: string
  readonly snapshotPolicy?: SnapshotPolicy
  /** absent in rows from before there was a network: none */
  readonly network?: NetworkSpec
  /** absent: the egress is direct. Belongs to another plugin; stored and copied as it is. `env` holds no secret */
  readonly egress?: EgressSpec
  /** absent: none */
  readonly volumes?: readonly VolumeSpec[]
  /** ids of devices of the host; absent: none */
  readonly devices?: readonly string[]
  /** as the create asked for them; the plugin ports knows which are in force. Absent: none */
  readonly ports?: readonly PortSpec[]
  /** a share of a GPU; absent: none */
  readonly gpu?: { readonly profile: string, readonly mdevUuid: string }
  readonly tags: Readonly<Record<string, string>>
  /** as the create asked for it; what is in force is in `life` */
  readonly lifetime?: Lifetime
  /** absent: it is never started by itself */
  readonly restartPolicy?: RestartPolicy
  /** absent: nobody probes its program */
  readonly healthCheck?: HealthCheck | undefined
  /** absent: `standby` */
  readonly wake?: WakePolicy
  /** absent: it goes to standby only when it is asked to */
  readonly autoStandby?: AutoStandbyPolicy
  /** the plugin that it works for; absent: it is a caller's */
  readonly worker?: string
  /** absent in rows from before this was stored */
  readonly source?: Source
}

/**
 * `creating` and `deleting`: an operation under way; the next start of the server removes such an instance wholly.
 */
export type RecordStatus = 'creating' | 'active' | 'deleting'

/** How a run of the program ended. */
export interface ExitFacts {
  /** null when the VM ended without a report */
  readonly exitCode: number | null
  readonly exitMessage: string
}

export interface InstanceRecord {
  readonly id: string
  readonly hostId: string
  readonly name: string
  readonly status: RecordStatus
  /** grows with each change of the row; a change names the version that it is based on */
  readonly version: number
  /** epoch `ms` */
  readonly createdAt: number
  /** normalised reference */
  readonly image: string
  readonly imageDigest: string
  readonly spec: InstanceSpec
  /** number of the VM's own user on this host; null when VMs run as the server's user, and at rest when another VM has its user */
  readonly slot: number | null
  /** the running VM; null when there is none */
  readonly handle: VmHandle | null
  /** epoch `ms` of the last launch */
  readonly startedAt: number | null
  /** epoch `ms` at which the program of this run was first seen running */
  readonly runningAt: number | null
  readonly stoppedAt: number | null
  /** epoch `ms` at which its memory image was made; null when it has none */
  readonly standbyAt: number | null
  readonly exit: ExitFacts | null
  readonly life: Life
}

/** The part of a record that operations change. */
export type RecordPatch = Partial<Pick<InstanceRecord, 'status' | 'spec' | 'handle' | 'startedAt' | 'runningAt' | 'stoppedAt' | 'standbyAt' | 'exit' | 'life' | 'slot'>>

/** The name under which an instance holds its image. */
export function imageHolder (id: string): string {
  return `instance:${id}`
}
