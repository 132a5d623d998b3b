// One build, as the VM that does it sees it: what is asked, what it tells meanwhile, and what comes of it. Types only.
import type { MediatedMode } from '../../proxy/contract/modes.ts'

export type NetworkMode = 'isolated' | 'egress'

export interface BuildJob {
  readonly id: string
  /** absolute path of the uploaded tar.gz */
  readonly sourcePath: string
  /** in place of one in the source */
  readonly dockerfile?: string
  /** path of the Dockerfile in the source; `Dockerfile` when absent */
  readonly dockerfilePath?: string
  readonly buildArgs: Readonly<Record<string, string>>
  readonly target?: string
  readonly noCache: boolean
  /** by the id that `--mount=type=secret,id=…` names. Values stay in memory */
  readonly secrets: ReadonlyMap<string, Buffer>
  /** repository part: `cache/<scope>` is read and written */
  readonly cacheScope?: string
  /** `cache/global/<key>` is read, and written when `writesGlobalCache` */
  readonly globalCacheKey?: string
  readonly writesGlobalCache: boolean
  /** what the base image must be */
  readonly baseImageDigest?: string
  /** repository and perhaps tag that the image gets; `builds/<id>` when absent */
  readonly imageName?: string
  /** whether whoever asked may read every image of the registry; else bases come from this build's own repositories or from outside */
  readonly readsRegistry: boolean
  readonly vcpus: number
  readonly memoryBytes: number
  readonly network: { readonly mode: NetworkMode, readonly egress?: MediatedMode }
  /** the cache disk of a builder; absent: a disk for this build alone */
  readonly cacheVolumeId?: string
}

/** What a build tells while it goes on. */
export interface BuildProgress {
  /** One line of output, without its end. */
  log (line: string): void
  /** The VM is there. */
  instance (id: string): Promise<void>
  /** The image is built, and goes to the registry. */
  pushing (): Promise<void>
  /** The registry has all of the image, which is being made ready for instances. A server that is killed from here on finds the build ready at its next start. */
  pushed (outcome: BuildOutcome): Promise<void>
}

export interface BuildOutcome {
  /** as the images plugin names it: `localhost/builds/<id>:latest` */
  readonly imageRef: string
  /** of the manifest in the registry, as the registry itself said */
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

/** Does builds in VMs, one VM each. */
export interface BuildRunner {
  /**
   * Builds, pushes, waits until the image is ready for instances, and removes the VM and all that belonged to it, however it ends.
   * @throws build_failed with a sentence for people that ends with the failing step's last lines; the signal's reason when it was aborted
   */
  run (job: BuildJob, progress: BuildProgress, signal: AbortSignal): Promise<BuildOutcome>
  /** Removes what a build has left whose server was killed: VM and disk. By the build's id alone, since their names are made of it. Idempotent. */
  clean (buildId: string): Promise<void>
  /** Makes the builder's image known to the registry when it is not yet, so that the first build need not wait for it. */
  prepare (signal: AbortSignal): Promise<void>
}
