// What images offer other plugins. Types only.
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
  /** number of the signal for a graceful stop; 15 when the image names none */
  readonly stopSignal?: number
  readonly tags?: Readonly<Record<string, string>>
}

export interface ReadyImage extends Image {
  readonly status: 'ready'
  /** absolute path of the erofs image, world-readable, shared and never changed */
  readonly rootfs: string
}

export interface ImageService {
  /** Starts a pull unless the image is here or being pulled. Returns the current record. */
  pull (reference: string, options?: { credentials?: RegistryCredentials, tags?: Readonly<Record<string, string>> }): Promise<Image>
  /**
   * The image, ready to boot; starts the pull when it is not here and waits up to `waitMs`.
   * Errors: `image_not_ready` (still on its way), `image_failed` (with its error), `invalid_name`.
   */
  require (reference: string, waitMs: number, signal?: AbortSignal): Promise<ReadyImage>
  /** Checks that this host runs images of a caller's platform (`linux/amd64`). @throws invalid_platform */
  requirePlatform (platform: string): void
  /** The ready image with this digest, by which an instance keeps its image even when the tag has moved on. */
  byDigest (digest: string): Promise<ReadyImage | undefined>
  /** Keeps the content of a digest on disk for as long as the holder names it; deleting the tag does not remove it. Idempotent. */
  hold (digest: string, holder: string): Promise<void>
  release (digest: string, holder: string): Promise<void>
  /** Releases what others than these hold, of all whose name begins with the kind and a colon: for the start of whoever names them, when a server that was killed may have left some. */
  retain (kind: string, holders: ReadonlySet<string>): Promise<void>
}

/** How skopeo accesses a repository. */
export interface RegistryAccess {
  /** the repository in skopeo's form: `docker.io/library/alpine`, `at-127-0-0-1.berth.invalid:8080/myapp` */
  readonly repository: string
  /** set for a registry on this host; absent: it is elsewhere, and looked up by its name */
  readonly local?: LocalRegistry
  /** a login file, 0600 */
  readonly authFile: string
  readonly tlsVerify: boolean
  /** secrets that must never be shown */
  readonly secrets: readonly string[]
  close (): Promise<void>
}

/** A registry on this host, under an alias that tools reach through the forward proxy: in their network, loopback addresses are their own. */
export interface LocalRegistry {
  /** `host` or `host:port`, for tools */
  readonly alias: string
  /** the registry's name, for people */
  readonly name: string
  /** the real endpoint for each `host:port` that the alias may be requested with */
  readonly endpoints: ReadonlyArray<readonly [string, { readonly host: string, readonly port: number }]>
}

export interface ToolOptions {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly env?: Readonly<Record<string, string>>
  /** limit on the bytes from all registries together; absent: no limit */
  readonly maxBytes?: number
  /** called now and then with the number of received bytes, and at the end */
  readonly received?: (bytes: number) => void
}

/** A manifest as it stands in a registry. */
export interface WantedManifest {
  readonly access: RegistryAccess
  /** the image, for messages */
  readonly name: string
  /** tag, or digest (`sha256:…`) */
  readonly end: string
}

export interface OpenRegistry {
  /** `domain/path`, normalised; `localhost/…` is the built-in registry */
  readonly repository: string
  /** absent: the server's own logins. The built-in registry needs none */
  readonly credentials?: RegistryCredentials | undefined
  /** private folder for the login file, which is removed with it */
  readonly folder: string
  readonly signal: AbortSignal
  /** absent: reading only */
  readonly purpose?: 'read' | 'write'
  /** whether plain HTTP and unknown certificates are allowed, beyond what the configuration of this plugin and loopback allow */
  readonly insecure?: boolean
}

export interface LocatedImage extends Image {
  /** repositories (`domain/path`) that have its manifest, or had it, those of the built-in registry first; this host keeps only an image's files, not its layers */
  readonly origins: readonly string[]
}

/** The registries of images, for plugins that copy images elsewhere. */
export interface ImageSources {
  /** The image that a reference means now, without a pull. @throws not_found, invalid_name */
  locate (reference: string): Promise<LocatedImage>
  /** Opens access to a repository, by the rules of a pull; must be closed. Its errors are written for people. */
  openRegistry (options: OpenRegistry): Promise<RegistryAccess>
  /** Reads a manifest. @throws RegistryFailure `corrupt` when the registry gives another one for a digest, otherwise as `skopeo` does */
  manifest (wanted: WantedManifest, options: ToolOptions): Promise<string>
  /**
   * Runs skopeo with these arguments. It reaches only these registries and public addresses, wherever a registry redirects it; it ends with the server.
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
