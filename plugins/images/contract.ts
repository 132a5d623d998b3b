// What other plugins may know of images. Types only.
import type { RunResult } from '../../core/contracts/services.ts'
import type { RegistryCredentials } from '../../core/library/oci/credentials.ts'

export type { RegistryCredentials } from '../../core/library/oci/credentials.ts'

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
  /** Whether this host runs images of a platform that a caller names (`linux/amd64`). @throws invalid_platform */
  requirePlatform (platform: string): void
  /** The ready image with this digest, by which an instance keeps its image even when the tag has moved on. */
  byDigest (digest: string): Promise<ReadyImage | undefined>
  /** Keeps the content of a digest on disk for as long as the holder names it; deleting the tag does not remove it. Idempotent. */
  hold (digest: string, holder: string): Promise<void>
  release (digest: string, holder: string): Promise<void>
}

/** How skopeo gets into a repository. */
export interface RegistryAccess {
  /** the repository as skopeo must write it: `docker.io/library/alpine`, `at-127-0-0-1.berth.invalid:8080/myapp` */
  readonly repository: string
  /** the place of this host that it is; absent: it is somewhere else, and looked up by its name */
  readonly local?: LocalRegistry
  /** a login file, 0600 */
  readonly authFile: string
  readonly tlsVerify: boolean
  /** never to be shown */
  readonly secrets: readonly string[]
  close (): Promise<void>
}

/** A registry on this host, under a name that tools ask the way out for: loopback addresses are not reached where they run. */
export interface LocalRegistry {
  /** `host` or `host:port`, for tools */
  readonly alias: string
  /** the same, for people */
  readonly name: string
  /** what the alias means, for each `host:port` that may be asked for */
  readonly endpoints: ReadonlyArray<readonly [string, { readonly host: string, readonly port: number }]>
}

export interface ToolOptions {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly env?: Readonly<Record<string, string>>
  /** what registries may send altogether, in bytes; absent: as much as they like */
  readonly maxBytes?: number
  /** told now and then how many bytes they have sent, and at the end */
  readonly received?: (bytes: number) => void
}

export interface OpenRegistry {
  /** `domain/path`, normalised; `localhost/…` is the built-in registry */
  readonly repository: string
  /** absent: the server's own logins. The built-in registry needs none */
  readonly credentials?: RegistryCredentials | undefined
  /** private folder for the login file, which goes with it */
  readonly folder: string
  readonly signal: AbortSignal
  /** reading only, when absent */
  readonly purpose?: 'read' | 'write'
  /** whether plain HTTP and unknown certificates are allowed, beyond what the configuration of this plugin and loopback allow */
  readonly insecure?: boolean
}

export interface LocatedImage extends Image {
  /** repositories (`domain/path`) that have its manifest, or had it, those of the built-in registry first; only the files of an image are kept here */
  readonly origins: readonly string[]
}

/** Where images come from, for those who copy them elsewhere. */
export interface ImageSources {
  /** The image that a reference means now; nothing is pulled. @throws not_found, invalid_name */
  locate (reference: string): Promise<LocatedImage>
  /** Opens the way to a repository, by the rules of a pull; close it when done. Its errors say to people what is wrong. */
  openRegistry (options: OpenRegistry): Promise<RegistryAccess>
  /**
   * Runs skopeo with these arguments. It reaches these registries and what is public, and nothing else, wherever a registry sends it; it ends with the server.
   * @throws RegistryFailure `address-refused`, or what the command reported
   */
  skopeo (args: readonly string[], registries: readonly RegistryAccess[], options: ToolOptions): Promise<RunResult>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly images: ImageService
    readonly imageSources: ImageSources
  }
}

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    'image.changed': { readonly name: string, readonly status: ImageStatus }
  }
}
