// One build, from the view of its VM: its order, its progress, and its result. Types only.
import type { MediatedMode } from '../../proxy/contract/modes.ts'

export type NetworkMode = 'isolated' | 'egress'

export interface BuildJob {
  readonly id: string
  /** absolute path of the uploaded tar.gz */
  readonly sourcePath: string
  /** replaces the Dockerfile of the source */
  readonly dockerfile?: string
  /** path of the Dockerfile in the source; `Dockerfile` when absent */
  readonly dockerfilePath?: string
  readonly buildArgs: Readonly<Record<string, string>>
  readonly target?: string
  readonly noCache: boolean
  /** by the id in `--mount=type=secret,id=…`. Values stay in memory */
  readonly secrets: ReadonlyMap<string, Buffer>
  /** repository part: `cache/<scope>` is read and written */
  readonly cacheScope?: string
  /** `cache/global/<key>` is read, and written when `writesGlobalCache` */
  readonly globalCacheKey?: string
  readonly writesGlobalCache: boolean
  /** the required digest of the base image */
  readonly baseImageDigest?: string
  /** repository and optional tag of the image; `builds/<id>` when absent */
  readonly imageName?: string
  /** whether the caller may read every image of the registry; otherwise base images come from this build's own repositories or from outside */
  readonly readsRegistry: boolean
  readonly vcpus: number
  readonly memoryBytes: number
  readonly network: { readonly mode: NetworkMode, readonly egress?: MediatedMode }
  /** the cache disk of a builder; absent: a disk for this build alone */
  readonly cacheVolumeId?: string
}

/** Reports of a running build. */
export interface BuildProgress {
  /** One line of output, without its end. */
  log (line: string): void
  /** The VM exists. */
  instance (id: string): Promise<void>
  /** The image is built, and is being pushed to the registry. */
  pushing (): Promise<void>
  /** The registry has the complete image, which is being made ready for instances. When the server is killed from here on, its next start finds the build ready. */
  pushed (outcome: BuildOutcome): Promise<void>
  /** Something of it could not be removed, and is there until `clean` is called. */
  left (): void
}

export interface BuildOutcome {
  /** in the images plugin's form: `localhost/builds/<id>:latest` */
  readonly imageRef: string
  /** of the manifest in the registry, as the registry itself reported it */
  readonly digest: string
  readonly provenance: BuildProvenance
}

export interface BuildProvenance {
  readonly baseImageDigest?: string
  /** sha256 of the uploaded archive, hexadecimal */
  readonly sourceHash: string
  /** sha256 by path in the source */
  readonly lockfileHashes: Readonly<Record<string, string>>
  /** `buildah` and its version */
  readonly builder: string
  readonly builderVersion: string
  readonly timestamp: Date
}

/** Runs builds in VMs, one VM each. */
export interface BuildRunner {
  /**
   * Builds, pushes, waits until the image is ready for instances, and removes the VM and everything that belonged to it, however the build ends.
   * @throws build_failed with a sentence for people that ends with the failing step's last lines; the signal's reason when it was aborted
   */
  run (job: BuildJob, progress: BuildProgress, signal: AbortSignal): Promise<BuildOutcome>
  /** Removes the VM and the disk of a build that does not run any more. The build's id is enough, since their names are derived from it. Idempotent. */
  clean (buildId: string): Promise<void>
  /** The ids of the builds of which a VM or a disk is on this host, whether they run or not. */
  remains (): Promise<readonly string[]>
  /** Puts the image for builds into the registry when it is not there yet, so that the first build need not wait for it. */
  prepare (signal: AbortSignal): Promise<void>
}
