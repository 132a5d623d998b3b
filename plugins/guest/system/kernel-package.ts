// Debian's kernel package as files: resolved and downloaded by apt, kept in a cache folder, unpacked, never installed on the host.
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BerthError } from '../../../core/errors/define.ts'
import { renameDurably, syncFile } from '../../../core/fs/durable.ts'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { KernelPackageUnknown, KernelUnavailable } from '../errors.ts'
import { readRelations } from './package-relations.ts'

const DOWNLOAD_TIMEOUT_MS = 600_000
const DOWNLOAD_PREFIX = '.download-'
/** a download of another process that shares the cache and takes longer than this counts as abandoned */
const STALE_DOWNLOAD_MS = 3_600_000
const REPORTED_LINES = 4

export interface PackageVersion { readonly name: string, readonly version: string }

function field (record: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*)$`, 'm').exec(record)?.[1]
}

/** Reads a record of `apt-cache show`: a kernel's own, or that of the metapackage that depends on the newest one. */
export function readPackageRecord (record: string): PackageVersion | undefined {
  const name = field(record, 'Package')
  const version = field(record, 'Version')
  const image = readRelations(field(record, 'Depends') ?? '').find((each) => each.version !== undefined && each.name.startsWith('linux-image-'))
  if (image?.version !== undefined) return { name: image.name, version: image.version }
  return name === undefined || version === undefined ? undefined : { name, version }
}

/** The package that `name` stands for now, by apt's current lists; they are updated only when they do not have it. */
export async function resolvePackage (commands: HostCommands, name: string, signal?: AbortSignal): Promise<PackageVersion> {
  const known = await showPackage(commands, name, signal)
  if (known !== undefined) return known
  await apt(commands, ['update'], { signal })
  const found = await showPackage(commands, name, signal)
  if (found === undefined) throw KernelPackageUnknown(name)
  return found
}

async function showPackage (commands: HostCommands, name: string, signal?: AbortSignal): Promise<PackageVersion | undefined> {
  try {
    const { stdout } = await commands.run('apt-cache', ['show', '--no-all-versions', name], { signal })
    return readPackageRecord(stdout)
  } catch (error) {
    // apt's exit code for an unknown package
    if (error instanceof HostCommandFailed && error.failure.exitCode === 100) return undefined
    throw asUnavailable(error)
  }
}

/** Path of the package's file in `cache`, downloaded when it is not there. Several processes may share a cache. */
export async function downloadPackage (commands: HostCommands, wanted: PackageVersion, cache: string, signal?: AbortSignal): Promise<string> {
  const cached = await findCached(cache, wanted)
  if (cached !== undefined) return cached
  await mkdir(cache, { recursive: true })
  await removeStaleDownloads(cache)
  const folder = join(cache, `${DOWNLOAD_PREFIX}${randomUUID()}`)
  await mkdir(folder)
  try {
    await apt(commands, ['download', `${wanted.name}=${wanted.version}`], { cwd: folder, signal })
    const file = (await readdir(folder)).find((name) => name.endsWith('.deb'))
    if (file === undefined) throw KernelUnavailable(`apt-get downloaded no file of ${wanted.name}`)
    await syncFile(join(folder, file))
    await renameDurably(join(folder, file), join(cache, file))
    return join(cache, file)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Paths of the packages with the kernel and its modules: one package, and since Linux 7.2 the three that Debian has split it into. */
export async function downloadKernel (commands: HostCommands, wanted: PackageVersion, cache: string, signal?: AbortSignal): Promise<readonly string[]> {
  const files = [await downloadPackage(commands, wanted, cache, signal)]
  const { stdout } = await commands.run('dpkg-deb', ['--field', ...files, 'Depends'], { signal })
  for (const { name, version } of readRelations(stdout)) {
    if (version !== undefined && /^linux-(?:base|binary|modules)-/.test(name)) files.push(await downloadPackage(commands, { name, version }, cache, signal))
  }
  return files
}

async function findCached (cache: string, { name, version }: PackageVersion): Promise<string | undefined> {
  const prefix = `${name}_${version.replaceAll(':', '%3a')}_`
  const file = (await listFolder(cache)).find((entry) => entry.startsWith(prefix) && entry.endsWith('.deb'))
  return file === undefined ? undefined : join(cache, file)
}

async function removeStaleDownloads (cache: string): Promise<void> {
  for (const entry of await listFolder(cache)) {
    if (!entry.startsWith(DOWNLOAD_PREFIX)) continue
    const path = join(cache, entry)
    const facts = await stat(path).catch((error: NodeJS.ErrnoException) => {
      // another process has just finished this download
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (facts !== undefined && Date.now() - facts.mtimeMs > STALE_DOWNLOAD_MS) await rm(path, { recursive: true, force: true })
  }
}

async function listFolder (path: string): Promise<string[]> {
  return await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
}

export interface UnpackedKernel {
  /** the bzImage */
  readonly image: string
  /** `/lib/modules/<release>` */
  readonly modules: string
}

export async function unpackKernel (commands: HostCommands, files: readonly string[], folder: string, signal?: AbortSignal): Promise<UnpackedKernel> {
  for (const file of files) await commands.run('dpkg-deb', ['-x', file, folder], { signal })
  return await findKernel(folder)
}

/** The kernel in a folder that packages were unpacked to. */
export async function findKernel (folder: string): Promise<UnpackedKernel> {
  const boot = await listFolder(join(folder, 'boot'))
  // Debian 13 and later have no /lib of their own, and since Linux 7.2 the kernel is in the folder of its modules.
  for (const root of ['lib/modules', 'usr/lib/modules']) {
    for (const release of await listFolder(join(folder, root))) {
      const modules = join(folder, root, release)
      if (boot.includes(`vmlinuz-${release}`)) return { image: join(folder, 'boot', `vmlinuz-${release}`), modules }
      if ((await listFolder(modules)).includes('vmlinuz')) return { image: join(modules, 'vmlinuz'), modules }
    }
  }
  throw KernelUnavailable(`${folder}: no kernel with its modules in there`)
}

async function apt (commands: HostCommands, args: readonly string[], options: { readonly cwd?: string, readonly signal?: AbortSignal | undefined }): Promise<void> {
  try {
    await commands.run('apt-get', ['-q', ...args], { ...options, timeoutMs: DOWNLOAD_TIMEOUT_MS })
  } catch (error) {
    throw asUnavailable(error)
  }
}

/** apt's last lines have the reason. */
function asUnavailable (error: unknown): unknown {
  if (error instanceof HostCommandFailed) {
    const lines = error.failure.stderr.split('\n').filter((line) => line !== '').slice(-REPORTED_LINES)
    return KernelUnavailable.from(error, `${error.failure.command} failed: ${lines.join(' ') || error.message}`)
  }
  if (error instanceof BerthError) return KernelUnavailable.from(error, `${error.message}; without apt, set kernelPath and modulesPath`)
  return error
}
