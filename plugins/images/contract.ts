// What other plugins may know of images. Types only.

export type ImageStatus = 'pending' | 'pulling' | 'converting' | 'ready' | 'failed'

export interface Image {
  /** normalised reference: `docker.io/library/alpine:latest`, `host:port/repo@sha256:…` */
  readonly name: string
  /** digest of the manifest for this host's platform; empty until resolved */
  readonly digest: string
  readonly status: ImageStatus
  readonly createdAt: Date
  readonly error?: string
  readonly sizeBytes?: number
  readonly cmd?: readonly string[]
  readonly entrypoint?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly workingDir?: string
  readonly user?: string
  /** signal number that the image wants for a graceful stop; 15 when it names none */
  readonly stopSignal?: number
  readonly tags?: Readonly<Record<string, string>>
}

export interface RegistryCredentials { readonly username?: string, readonly password?: string, readonly registryToken?: string }

export interface ReadyImage extends Image {
  readonly status: 'ready'
  /** absolute path of the erofs image, world-readable, shared and never changed */
  readonly rootfs: string
}

export interface ImageService {
  /** Starts a pull unless the image is there or on its way. The answer is the record as it stands. */
  pull (reference: string, options?: { credentials?: RegistryCredentials, tags?: Readonly<Record<string, string>> }): Promise<Image>
  /**
   * The image, ready to boot; starts the pull when it is not here and waits up to `waitMs`.
   * Errors: `image_not_ready` (still on its way), `image_failed` (with its error), `invalid_name`.
   */
  require (reference: string, waitMs: number, signal?: AbortSignal): Promise<ReadyImage>
  /** The ready image with this digest, by which an instance keeps its image even when the tag has moved on. */
  byDigest (digest: string): Promise<ReadyImage | undefined>
  /** Keeps the content of a digest on disk for as long as the holder names it; deleting the tag does not remove it. Idempotent. */
  hold (digest: string, holder: string): Promise<void>
  release (digest: string, holder: string): Promise<void>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly images: ImageService
  }
}

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    'image.changed': { readonly name: string, readonly status: ImageStatus }
  }
}
