// The stored record of a push. Types only.

export type PushStatus = 'queued' | 'pushing' | 'pushed' | 'failed'

export interface NewPush {
  readonly id: string
  /** normalised reference */
  readonly image: string
  readonly digest: string
  /** repositories (`domain/path`) that have the manifest, in the order in which they are tried */
  readonly origins: readonly string[]
  /** normalised reference, for people */
  readonly target: string
  /** the same, but `localhost/…` for the built-in registry, whose address changes */
  readonly destination: string
  readonly insecure: boolean
  /** the caller has lent credentials, which are kept in memory only */
  readonly isLent: boolean
  /** the key that asked for it, by its durable id; null: an earlier version has stored none */
  readonly keyId: string | null
  /** epoch `ms` */
  readonly createdAt: number
}

export interface PushRecord extends NewPush {
  readonly status: PushStatus
  /** from the manifest; null until that has been read */
  readonly layers: number | null
  /** compressed size of the layers, `bytes` */
  readonly bytes: number | null
  readonly error: string | null
  /** epoch `ms` */
  readonly completedAt: number | null
}

/** An image's size, from its manifest. */
export interface ImageWeight { readonly layers: number, readonly bytes: number }
