// What is stored of a builder. Types only.

export type BuilderStatus = 'ready' | 'pruning' | 'deleting' | 'error'

export interface BuilderRecord {
  readonly id: string
  /** `creating` is nobody's business but this plugin's: the next start of the server removes what it finds so */
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

/** To whom the disks belong. */
export const VOLUME_OWNER = 'builds'

/** How the ids of builders' disks begin: disks of single builds belong to the same owner, and whoever runs those. */
export const DISK_PREFIX = 'cache-'
