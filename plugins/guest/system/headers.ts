// The disk with the modules and headers of the guest's kernel: made once for each kernel, read-only, and shared by all VMs that want it.
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands, Logger } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { renameDurably, syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { KernelHeadersUnavailable } from '../errors.ts'
import type { GuestConfig } from '../manifest.ts'
import { ownFiles, packagedFiles } from './headers-files.ts'
import { makeHeadersTree } from './headers-tree.ts'
import { BUILD_PREFIX } from './store.ts'

/** Changes whenever this code would make another disk of the same kernel. */
const HEADERS_VERSION = 1
const HASH_LENGTH = 12
const FILE = 'headers.erofs'

export interface KernelHeaders {
  /** The name of the disk for the system's kernel, which is built when it does not exist; undefined when VMs get none. @throws KernelHeadersUnavailable */
  disk (): Promise<string | undefined>
  path (name: string): string
  /** Resolves when no build is under way. Never rejects. */
  settled (): Promise<void>
}

export interface HeadersDeps {
  readonly commands: HostCommands
  readonly log: Logger
  /** folder of the finished systems and of these disks */
  readonly folder: string
  readonly config: GuestConfig
}

/** @param kernel gives the identity of the system's kernel, as in its recipe */
export function createKernelHeaders (deps: HeadersDeps, kernel: () => Promise<string>, signal: AbortSignal): KernelHeaders {
  let current: Promise<string> | undefined
  return {
    async disk () {
      if (!deps.config.kernelHeaders) return undefined
      current ??= findOrBuild(deps, kernel, signal).catch((error: unknown) => {
        // The next caller tries again: the network may have come back.
        current = undefined
        throw error
      })
      return await current
    },
    path: (name) => join(deps.folder, name, FILE),
    async settled () {
      await current?.catch((error: unknown) => { deps.log.debug({ err: error }, 'the build of the kernel\'s headers was given up') })
    }
  }
}

async function findOrBuild (deps: HeadersDeps, kernel: () => Promise<string>, signal: AbortSignal): Promise<string> {
  // Its error concerns the kernel, not the headers.
  const identity = await kernel()
  const hash = createHash('sha256').update(`${HEADERS_VERSION}\n${identity}`).digest('hex').slice(0, HASH_LENGTH)
  const version = identity.startsWith('own=') ? 'own' : identity.slice(identity.indexOf('=') + 1)
  const name = `headers-${version.replaceAll(/[^\w.+~-]/g, '_')}-${hash}`
  if (await isThere(join(deps.folder, name, FILE))) return name
  const began = performance.now()
  try {
    await build(deps, identity, name, signal)
  } catch (error) {
    if (signal.aborted || KernelHeadersUnavailable.is(error)) throw error
    throw KernelHeadersUnavailable.from(error, error instanceof Error ? error.message : String(error))
  }
  deps.log.info({ disk: name, ms: Math.round(performance.now() - began) }, 'the disk with the kernel\'s modules and headers was built')
  return name
}

/** What is left of a killed build is removed with the leftovers of systems, at the next start. */
async function build ({ commands, folder, config }: HeadersDeps, identity: string, name: string, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true })
  const work = await mkdtemp(join(folder, BUILD_PREFIX))
  try {
    const result = join(work, 'disk')
    const tree = join(work, 'tree')
    await mkdir(result)
    await mkdir(tree)
    const files = config.modulesPath === undefined ? packagedFiles(commands, identity, config.kernelCache ?? join(folder, 'cache')) : ownFiles(commands, config.modulesPath)
    await files(tree, signal)
    await makeHeadersTree(commands, tree, signal)
    await commands.run('mkfs.erofs', ['--quiet', '--preserve-mtime', '--all-root', '-zlz4', join(result, FILE), tree], { signal })
    await syncFile(join(result, FILE))
    await syncFolder(result)
    await renameDurably(result, join(folder, name))
  } catch (error) {
    // Another process that uses the same folder was first.
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
