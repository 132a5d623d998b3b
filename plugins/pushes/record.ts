// What is stored of a push. Types only.

export type PushStatus = 'queued' | 'pushing' | 'pushed' | 'failed'

export interface NewPush {
  readonly id: string
  /** normalised reference */
  readonly image: string
  readonly digest: string
  /** repositories (`domain/path`) that have the manifest, in the order in which they are asked */
  readonly origins: readonly string[]
  /** normalised reference, for people */
  readonly target: string
  /** the same, `localhost/…` when it is the built-in registry, whose address changes */
  readonly destination: string
  readonly insecure: boolean
  /** a caller has lent credentials, which are in memory only */
  readonly isLent: boolean
  /** epoch `ms` */
  readonly createdAt: number
}

export interface PushRecord extends NewPush {
  readonly status: PushStatus
  /** of the manifest; null until that has been read */
  readonly layers: number | null
  /** compressed size of the layers, `bytes` */
  readonly bytes: number | null
  readonly error: string | null
  /** epoch `ms` */
  readonly completedAt: number | null
}

/** What a manifest says of its image. */
export interface ImageWeight { readonly layers: number, readonly bytes: number }
