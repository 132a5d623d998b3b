// The base image of a build: finds it in the Dockerfile, and compares it with the required digest.
import { ociArchitecture } from '../../../core/library/oci/architecture.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { BuildFailed } from '../errors.ts'
import type { BuildJob } from '../run.ts'
import { baseImages, type BaseImages } from './base-images.ts'
import { BUILDAH_ENVIRONMENT, pullArguments } from './buildah-arguments.ts'
import type { BuildLog } from './build-log.ts'
import { describeFailure } from './failure.ts'
import { outputOf, runInGuest } from './guest-command.ts'
import { STORE } from './guest-paths.ts'
import { findStoredImage } from './image-records.ts'

const MAX_DOCKERFILE_BYTES = 2 ** 20

export interface BaseContext {
  readonly link: GuestLink
  readonly job: BuildJob
  /** path in the guest */
  readonly dockerfile: string
  /** registries for short names */
  readonly searched: readonly string[]
  readonly log: BuildLog
  readonly signal: AbortSignal
}

export async function readBases ({ link, job, dockerfile, signal }: BaseContext): Promise<BaseImages> {
  const text = await outputOf(link, ['head', `--bytes=${MAX_DOCKERFILE_BYTES + 1}`, dockerfile], signal)
  if (Buffer.byteLength(text) > MAX_DOCKERFILE_BYTES) throw BuildFailed(`dockerfile: has more than ${MAX_DOCKERFILE_BYTES} bytes`)
  return baseImages(text, job.buildArgs, job.target, `linux/${ociArchitecture()}`)
}

/** The digest of the base image in the store. */
export async function baseDigest ({ link, searched, signal }: BaseContext, bases: BaseImages): Promise<string | undefined> {
  return bases.main === undefined ? undefined : (await findStoredImage(link, STORE, bases.main, searched, signal))?.digest
}

/** Pulls the base images and compares, before a step of the build runs on an image that may be a stranger's. @throws build_failed */
export async function checkBase (context: BaseContext, bases: BaseImages, wanted: string): Promise<void> {
  const { link, job, log, searched, signal } = context
  if (bases.main === undefined) throw BuildFailed('base_image_digest: this build has no base image')
  for (const image of bases.all) {
    const { exitCode } = await runInGuest(link, { argv: pullArguments(image), env: BUILDAH_ENVIRONMENT, output: (chunk) => log.push(chunk), signal })
    log.end()
    if (exitCode !== 0) {
      throw BuildFailed(describeFailure(`fetching the base image ${image}`, {
        exitCode, last: log.last(), memoryBytes: job.memoryBytes, oomKills: 0, isIsolated: job.network.mode === 'isolated', readsRegistry: job.readsRegistry
      }))
    }
  }
  const found = await findStoredImage(link, STORE, bases.main, searched, signal)
  if (found?.digests.includes(wanted) !== true) {
    throw BuildFailed(`base_image_digest: the base image ${bases.main} must be ${wanted}, and is ${found?.digest ?? 'unknown'}`)
  }
}
