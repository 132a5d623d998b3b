// The stored record of a builder. Types only.

export type BuilderStatus = 'ready' | 'pruning' | 'deleting' | 'error'

export interface BuilderRecord {
  readonly id: string
  /** `creating` is internal: the next start of the server removes builders with this status */
  readonly status: BuilderStatus | 'creating'
  readonly name: string | null
  readonly diskSizeGb: number
  /** its cache disk; another one after each prune */
  readonly volumeId: string
  readonly tags: Readonly<Record<string, string>>
  /** epoch ms */
  readonly createdAt: number
  readonly lastUsedAt: number | null
}

/** The owner of the disks. */
export const VOLUME_OWNER = 'builds'

/** The prefix of the ids of builders' disks: disks of single builds have the same owner, but the build runner manages those. */
export const DISK_PREFIX = 'cache-'
