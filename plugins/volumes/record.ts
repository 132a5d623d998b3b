// What is stored of a volume. Types only.
import type { VolumeClaim } from '../instances/volumes/contract.ts'

/** `creating` and `deleting` are known to this plugin only: the next start of the server removes volumes in these states. */
export type VolumeStatus = 'creating' | 'ready' | 'deleting'

export interface VolumeRecord {
  readonly id: string
  readonly status: VolumeStatus
  readonly name: string
  /** GiB; whole MiB */
  readonly sizeGb: number
  readonly tags: Readonly<Record<string, string>>
  /** epoch `ms` */
  readonly createdAt: number
  /** begins by chance, and goes up by one with each writer that it is attached to */
  readonly generation: number
  /** the plugin that it belongs to; absent: it is a caller's */
  readonly owner?: string
}

export interface Attachment extends VolumeClaim {
  readonly instanceId: string
}

export interface VolumeWithAttachments extends VolumeRecord {
  readonly attachments: readonly Attachment[]
}

/** bytes in the unit of sizes */
export const GIB = 2 ** 30
