// Prepares the VM of one build: its disk, the link to it, the registry on its loopback, and the files in its memory.
import type { Logger } from '../../../core/contracts/services.ts'
import { BerthError } from '../../../core/errors/define.ts'
import type { Undo } from '../../../core/undo.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { InstanceWorkers, WorkerRequest } from '../../instances/contract.ts'
import type { RegistryChannel } from '../../registry/contract.ts'
import type { VolumeService } from '../../instances/volumes/contract.ts'
import { BuildFailed } from '../errors.ts'
import type { BuildJob } from '../run.ts'
import { closeCacheDisk, openCacheDisk } from './cache-disk.ts'
import { outputOf, putFile } from './guest-command.ts'
import { DISK, MEMORY, MOUNT, SECRETS, SOURCE, STORE, TEMPORARY } from './guest-paths.ts'
import { registriesConf, type RegistriesView } from './registries.ts'

/** Owner of the disks of builds. */
export const OWNER = 'builds'

/** The tag of their VMs, with the build's id. */
export const TAG = 'berth.build'

const PREFIX = 'build-'

export interface VmDeps {
  readonly log: Logger
  readonly workers: InstanceWorkers
  readonly volumes: VolumeService
  readonly diskGb: number
  readonly bootTimeoutMs: number
}

/** The name of everything that a build leaves on this host. */
export function nameOf (buildId: string): string {
  return `${PREFIX}${buildId}`
}

/** The build whose disk has this name, if it is one's. */
export function buildOf (name: string): string | undefined {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined
}

interface Start {
  readonly job: BuildJob
  readonly image: string
  /** told the instance's id as soon as there is one */
  started (id: string): Promise<void>
}

/** Starts the VM; adds to `undo` what removes it. @returns its id and the link */
export async function startVm (deps: VmDeps, { job, image, started }: Start, undo: Undo, signal: AbortSignal): Promise<GuestLink> {
  const name = nameOf(job.id)
  try {
    if (job.cacheVolumeId === undefined) {
      undo.add(async () => { await deps.volumes.remove(name, OWNER) })
      await deps.volumes.create({ id: name, name, sizeGb: deps.diskGb, owner: OWNER })
    }
    signal.throwIfAborted()
    undo.add(async () => { await deps.workers.remove(name) })
    const { id } = await deps.workers.create(requestOf(job, image))
    await started(id)
    return await deps.workers.link(id, deps.bootTimeoutMs, signal)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof BerthError ? BuildFailed.from(error, `the VM of the build could not be started: ${error.message}`) : error
  }
}

function requestOf (job: BuildJob, image: string): WorkerRequest {
  const name = nameOf(job.id)
  return {
    name,
    image,
    argv: ['sleep', 'infinity'],
    vcpus: job.vcpus,
    memoryBytes: job.memoryBytes,
    network: job.network.mode === 'isolated' ? 'none' : job.network.egress ?? 'direct',
    volumes: [{ volumeId: job.cacheVolumeId ?? name, mountPath: MOUNT }],
    volumeOwner: OWNER,
    tags: { [TAG]: job.id }
  }
}

/** Serves the built-in registry on the guest's loopback. */
export async function serveRegistry (link: GuestLink, channel: RegistryChannel, view: RegistriesView, undo: Undo): Promise<void> {
  const listener = await link.listen(view.port, (connection) => channel.serve(connection))
  undo.add(() => listener.close())
  await putFile(link, '/etc/containers/registries.conf', registriesConf(view))
}

interface Opening extends Pick<VmDeps, 'log'> {
  readonly job: BuildJob
  /** writes a line of the build's log */
  note (line: string): void
}

/** Why a build must not use what builds of other keys have left on a builder's disk, for people; undefined when it may. */
export function distrustOf ({ readsRegistry, baseImageDigest, writesGlobalCache }: Pick<BuildJob, 'readsRegistry' | 'baseImageDigest' | 'writesGlobalCache'>): string | undefined {
  if (writesGlobalCache) return 'this build fills a shared cache, and other keys may have written what is there'
  // With a required digest, images are taken from the disk as they were checked, without a question to their registry; see `buildArguments` for the others.
  return readsRegistry || baseImageDigest === undefined ? undefined : 'it may have images that the key of this build may not read'
}

/** Makes the folders; on a builder's disk, also ensures that the cache can be trusted, now and the next time. */
export async function openDisk (link: GuestLink, { job, log, note }: Opening, undo: Undo, signal: AbortSignal): Promise<void> {
  // An operator's own builder image may have neither.
  await outputOf(link, ['mkdir', '--parents', MEMORY, DISK], signal)
  // A step's secrets, and the list of containers, must not be on a disk: not even on a temporary one, and least of all on a builder's.
  await outputOf(link, ['mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', MEMORY], signal)
  await outputOf(link, ['mount', '--bind', MOUNT, DISK], signal)
  if (job.cacheVolumeId !== undefined) {
    const why = await openCacheDisk(link, distrustOf(job), signal)
    if (why !== undefined) note(why)
    undo.add(async () => {
      try {
        await closeCacheDisk(link)
      } catch (error) {
        // The next build finds no mark, and discards the cache.
        log.warn({ err: error, build: job.id }, 'the disk of a builder was not left in order')
      }
    })
  }
  const containers = `${STORE}/overlay-containers`
  await outputOf(link, ['mkdir', '--parents', SOURCE, TEMPORARY, containers], signal)
  await outputOf(link, ['mount', '-t', 'tmpfs', '-o', 'mode=700', 'tmpfs', containers], signal)
}

/** Writes the secrets into the guest's memory. @returns the path of each by its id */
export async function placeSecrets (link: GuestLink, secrets: ReadonlyMap<string, Buffer>): Promise<ReadonlyMap<string, string>> {
  const paths = new Map<string, string>()
  for (const [id, value] of secrets) {
    const path = `${SECRETS}/${paths.size}`
    await putFile(link, path, value, 0o400)
    paths.set(id, path)
  }
  return paths
}
