// A snapshot as this plugin works with it.
import type { Compression } from '../../core/library/compressed-memory.ts'
import type { CopyKind, InstanceCopy } from '../instances/contract.ts'

/** `creating` and `deleting` are known to this plugin only: the next start of the server removes snapshots in these states. */
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
  /** bytes on disk of everything but the memory */
  readonly diskBytes: number
  /** bytes on disk of the memory, before compression; null without memory */
  readonly memoryBytes: number | null
  readonly compressedBytes: number | null
  /** the compression that is wanted; null: none, or nothing to compress */
  readonly compression: Compression | null
  readonly compressionState: CompressionState
  readonly compressionError: string | null
}

/** A whole snapshot with the description from which an instance is made again. */
export interface SnapshotWithCopy extends SnapshotRecord {
  readonly copy: InstanceCopy
}

/** What is known of a snapshot once its files are on disk. */
export interface SnapshotContent {
  readonly copy: InstanceCopy
  readonly diskBytes: number
  readonly memoryBytes: number | null
}

/** The name under which a snapshot holds its OCI image. */
export function imageHolder (id: string): string {
  return `snapshot:${id}`
}
