// Runs a build from its source to a usable image, in a VM of its own that is removed afterwards, however the build ends.
import { posix } from 'node:path'
import type { EventBus, ServerInfo } from '../../../core/contracts/services.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { GuestLink, GuestService } from '../../guest/contract.ts'
import type { ImageService } from '../../images/contract.ts'
import type { RegistryChannel, RegistrySource } from '../../registry/contract.ts'
import type { BuilderImage } from '../builder-image/builder-image.ts'
import { createRegistryClient } from '../builder-image/registry-client.ts'
import { BuildFailed } from '../errors.ts'
import type { BuildJob, BuildOutcome, BuildProgress, BuildProvenance, BuildRunner } from '../run.ts'
import { baseDigest, checkBase, readBases, type BaseContext } from './base-check.ts'
import type { BaseImages } from './base-images.ts'
import { buildImage, pushImage, type Work } from './build-image.ts'
import { createBuildLog } from './build-log.ts'
import { buildOf, nameOf, openDisk, OWNER, placeSecrets, serveRegistry, startVm, TAG, type VmDeps } from './build-vm.ts'
import { outputOf, putFile } from './guest-command.ts'
import { DOCKERFILE, SOURCE } from './guest-paths.ts'
import { cachesOf, grantOf, targetOf, type Caches } from './image-target.ts'
import { lockfileHashes } from './lockfiles.ts'
import { searchedRegistries, type RegistriesView } from './registries.ts'
import { sendSource } from './source.ts'
import { STEP_RUNTIME, stepRuntime } from './step-runtime.ts'
import { stepTrust } from './step-trust.ts'

export interface RunnerDeps extends VmDeps {
  readonly events: EventBus
  readonly server: ServerInfo
  readonly guest: GuestService
  readonly images: ImageService
  readonly registry: RegistrySource
  readonly builderImage: BuilderImage
  /** time for a pushed image to become ready for instances */
  readonly imageTimeoutMs: number
}

interface Deps extends RunnerDeps {
  /** buildah's, by the name of an image with its digest: what is in it does not change, and buildah takes half a second to start where processors are emulated */
  readonly versions: Map<string, string>
}

export function createBuildRunner (given: RunnerDeps): BuildRunner {
  const deps: Deps = { ...given, versions: new Map() }
  return {
    async run (job, progress, signal) {
      const undo = createUndo()
      try {
        return await build(deps, job, progress, undo, signal)
      } catch (error) {
        signal.throwIfAborted()
        throw readable(error)
      } finally {
        await takeBack(deps, job, progress, undo)
      }
    },
    async clean (buildId) {
      await deps.workers.remove(nameOf(buildId))
      await deps.volumes.remove(nameOf(buildId), OWNER)
    },
    async remains () {
      const disks = (await deps.volumes.ownedBy(OWNER)).map(buildOf).filter((id) => id !== undefined)
      return [...new Set([...deps.workers.tagged(TAG), ...disks])]
    },
    async prepare (signal) {
      await deps.builderImage.ready(signal)
    }
  }
}

async function build (deps: Deps, job: BuildJob, progress: BuildProgress, undo: Undo, signal: AbortSignal): Promise<BuildOutcome> {
  const { registry, builderImage } = deps
  const log = createBuildLog(job.secrets.values(), (line) => progress.log(line))
  const image = await builderImage.ready(signal)
  const link = await startVm(deps, { job, image, started: async (id) => await progress.instance(id) }, undo, signal)
  const target = targetOf(job)
  const caches = cachesOf(job)
  const channel = registry.open(grantOf(job, target, caches))
  undo.add(() => channel.revoke())
  const port = Number(new URL(deps.server.localUrl()).port)
  const view: RegistriesView = { port, names: registry.names(), isReadable: job.readsRegistry }
  await openDisk(link, { job, log: deps.log, note: (line) => log.note(line) }, undo, signal)
  await serveRegistry(link, channel, view, undo)

  const [sourceHash, builderVersion] = await Promise.all([sendSource(link, job.sourcePath, SOURCE, signal), buildahVersion(link, image, deps.versions, signal)])
  const lockfiles = await lockfileHashes(link, SOURCE, signal)
  const dockerfile = await placeDockerfile(link, job)
  const context: BaseContext = { link, job, dockerfile, searched: searchedRegistries(view), log, signal }
  const bases = await readBases(context)
  if (job.baseImageDigest !== undefined) await checkBase(context, bases, job.baseImageDigest)

  const host = hostOf(port, bases)
  const work: Work = { link, job, log, signal }
  await buildInGuest(deps, work, { dockerfile, channel, caches, host })
  const provenance: BuildProvenance = { baseImageDigest: await baseDigest(context, bases), sourceHash, lockfileHashes: lockfiles, builder: 'buildah', builderVersion, timestamp: new Date() }
  await progress.pushing()
  const digest = await pushImage(work, deps.events, host, target)
  const outcome: BuildOutcome = { imageRef: `localhost/${target.repository}:${target.tag}`, digest, provenance }
  await progress.pushed(outcome)
  // The VM's work is done, and other builds may be waiting for its memory.
  await takeBack(deps, job, progress, undo)
  await deps.images.require(outcome.imageRef, deps.imageTimeoutMs, signal)
  return outcome
}

interface Surroundings { readonly dockerfile: string, readonly channel: RegistryChannel, readonly caches: Caches, readonly host: string }

async function buildInGuest (deps: RunnerDeps, work: Work, { dockerfile, channel, caches, host }: Surroundings): Promise<void> {
  const { link, job, signal } = work
  const secrets = await placeSecrets(link, job.secrets)
  const isMediated = job.network.mode === 'egress' && job.network.egress !== undefined
  const trust = isMediated ? stepTrust(deps.guest.trustEnvironment({}, {})) : undefined
  await putFile(link, STEP_RUNTIME, stepRuntime(trust?.beforeCreate), 0o755)
  const client = createRegistryClient(channel, signal)
  let cacheFrom: string | undefined
  for (const repository of caches.read) cacheFrom ??= await client.hasTags(repository) ? repository : undefined
  await buildImage(work, {
    job,
    dockerfile,
    secrets,
    hasBases: job.baseImageDigest !== undefined,
    volumes: trust?.volumes ?? [],
    runtime: STEP_RUNTIME,
    cacheFrom: cacheFrom === undefined ? undefined : `${host}/${cacheFrom}`,
    cacheTo: caches.write === undefined ? undefined : `${host}/${caches.write}`
  })
}

/** @returns its path in the guest */
async function placeDockerfile (link: GuestLink, { dockerfile, dockerfilePath = 'Dockerfile' }: BuildJob): Promise<string> {
  if (dockerfile !== undefined) {
    await putFile(link, DOCKERFILE, dockerfile)
    return DOCKERFILE
  }
  const path = posix.join(SOURCE, posix.normalize(`/${dockerfilePath}`))
  const { type } = await link.stat(path, { follow: true })
  if (type !== 'file') throw BuildFailed(`the source has no file ${dockerfilePath}`)
  return path
}

/**
 * The registry's name for the push. Unlike a base image's name, registries.conf does not translate it; and buildah knows which layers the registry already has only under the name
 * by which they were pulled.
 */
function hostOf (port: number, bases: BaseImages): string {
  const named = `localhost:${port}`
  return bases.all.some((image) => image.startsWith(`${named}/`)) ? named : `127.0.0.1:${port}`
}

async function buildahVersion (link: GuestLink, image: string, versions: Map<string, string>, signal: AbortSignal): Promise<string> {
  const known = versions.get(image)
  if (known !== undefined) return known
  const version = /version (\S+)/.exec(await outputOf(link, ['buildah', '--version'], signal))?.[1] ?? ''
  if (image.includes('@')) versions.set(image, version)
  return version
}

async function takeBack ({ log }: RunnerDeps, { id }: BuildJob, progress: BuildProgress, undo: Undo): Promise<void> {
  const failures = await undo.run()
  for (const error of failures) log.warn({ err: error, build: id }, 'something of a build could not be removed; it is tried again')
  if (failures.length > 0) progress.left()
}

function readable (error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error
  if (error.code === 'guest_gone') return BuildFailed.from(error, `the VM of the build has ended before the build did: ${error.message}`)
  if (error.code === 'guest_refused') return BuildFailed.from(error, `the VM of the build refused what was asked of it: ${error.message}`)
  if (BuildFailed.is(error) || !(error instanceof BerthError) || error.kind === 'internal') return error
  return BuildFailed.from(error, error.message)
}
