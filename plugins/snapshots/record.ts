// What is known of a snapshot, as the plugin works with it.
import type { Compression } from '../../core/library/compressed-memory.ts'
import type { CopyKind, InstanceCopy } from '../instances/contract.ts'

/** `creating` and `deleting` are nobody's business but this plugin's: the next start of the server removes what it finds so. */
export type SnapshotStatus = 'creating' | 'ready' | 'deleting'

export const COMPRESSION_STATES = ['none', 'compressing', 'compressed', 'error'] as const
export type CompressionState = typeof COMPRESSION_STATES[number]

export interface SnapshotRecord {
  readonly id: string
  readonly status: SnapshotStatus
  readonly kind: CopyKind
  readonly name: string | null
  readonly sourceId: string
  readonly sourceName: string
  readonly hypervisor: string
  readonly imageDigest: string
  readonly tags: Readonly<Record<string, string>>
  /** made by a schedule, whose retention may remove it */
  readonly scheduled: boolean
  /** epoch ms */
  readonly createdAt: number
  /** on disk, all but the memory */
  readonly diskBytes: number
  /** on disk, before compression; null without memory */
  readonly memoryBytes: number | null
  readonly compressedBytes: number | null
  /** what is wanted; null: none, or nothing to compress */
  readonly compression: Compression | null
  readonly compressionState: CompressionState
  readonly compressionError: string | null
}

/** A whole snapshot with what a machine is made of again. */
export interface SnapshotWithCopy extends SnapshotRecord {
  readonly copy: InstanceCopy
}

/** What a snapshot turned out to be, once its files are on disk. */
export interface SnapshotContent {
  readonly copy: InstanceCopy
  readonly diskBytes: number
  readonly memoryBytes: number | null
}

/** Who holds the OCI image of a snapshot. */
export function imageHolder (id: string): string {
  return `snapshot:${id}`
}
