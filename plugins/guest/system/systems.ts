// The system that VMs boot: found among the finished ones or built from the kernel and berth-init, once for all who ask at a time.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands, Logger } from '../../../core/contracts/services.ts'
import type { GuestSystem } from '../contract.ts'
import { InitMissing, KernelUnavailable } from '../errors.ts'
import type { GuestConfig } from '../manifest.ts'
import { kernelArguments } from './arguments.ts'
import { createKernelHeaders, type KernelHeaders } from './headers.ts'
import { buildInitrd } from './initrd.ts'
import { ownKernel, packagedKernel, type KernelSource } from './kernel-source.ts'
import { loadModules } from './modules.ts'
import { RECIPE_VERSION, type Recipe } from './recipe.ts'
import { createSystemStore, INITRD_FILE, KERNEL_FILE, type SystemStore } from './store.ts'
import { extractVmlinux } from './vmlinux.ts'

const HASH_LENGTH = 12

export interface SystemsDeps {
  readonly commands: HostCommands
  readonly log: Logger
  /** where finished systems are kept */
  readonly folder: string
  /** path of the compiled berth-init */
  readonly initPath: string
  readonly config: GuestConfig
}

export interface Systems {
  clean (): Promise<void>
  system (): Promise<GuestSystem>
  /** of the kernel that the system boots */
  readonly headers: KernelHeaders
  /** Gives up a build under way. */
  close (): Promise<void>
}

export function createSystems (deps: SystemsDeps): Systems {
  const store = createSystemStore(deps.folder)
  const closing = new AbortController()
  let current: Promise<GuestSystem> | undefined
  const system = (): Promise<GuestSystem> => {
    current ??= provide(deps, store, closing.signal).catch((error: unknown) => {
      // The next caller tries again: the network may have come back.
      current = undefined
      throw error
    })
    return current
  }
  const kernel = async (): Promise<string> => (await store.recipeOf((await system()).version))?.kernel ?? ''
  const headers = createKernelHeaders(deps, kernel, closing.signal)
  return {
    clean: () => store.clean(),
    system,
    headers,
    async close () {
      closing.abort()
      await current?.catch((error: unknown) => { deps.log.debug({ err: error }, 'the build of the guest system was given up') })
      await headers.settled()
    }
  }
}

async function provide (deps: SystemsDeps, store: SystemStore, signal: AbortSignal): Promise<GuestSystem> {
  const init = await readInit(deps.initPath)
  const unfinished = { recipe: RECIPE_VERSION, init: sha256(init) }
  const kernel = await findKernel(deps, signal).catch(async (error: unknown) => {
    // Only for causes that may pass by themselves: an old kernel must not hide a wrong setting.
    if (!KernelUnavailable.is(error) || deps.config.kernelPath !== undefined || deps.config.modulesPath !== undefined) throw error
    const older = await store.findNewest((made) => made.recipe === unfinished.recipe && made.init === unfinished.init)
    if (older === undefined) throw error
    deps.log.warn({ err: error, version: older }, 'the kernel could not be looked up; the last one built is used')
    return older
  })
  const version = typeof kernel === 'string' ? kernel : await findOrBuild(deps, store, { recipe: { ...unfinished, kernel: kernel.identity }, kernel, init }, signal)
  return {
    version,
    kernel: store.path(version, KERNEL_FILE),
    initrd: store.path(version, INITRD_FILE),
    arguments: kernelArguments(deps.config.kernelArguments)
  }
}

interface Ingredients {
  readonly recipe: Recipe
  readonly kernel: KernelSource
  readonly init: Buffer
}

async function findOrBuild (deps: SystemsDeps, store: SystemStore, { recipe, kernel, init }: Ingredients, signal: AbortSignal): Promise<string> {
  const made = await store.find(recipe)
  if (made !== undefined) return made
  const began = performance.now()
  const version = await store.add(recipe, async (folder, scratch) => {
    const files = await kernel.unpack(scratch, signal)
    await extractVmlinux(deps.commands, files.image, join(folder, KERNEL_FILE))
    const initrd = buildInitrd(init, await loadModules(deps.commands, files.modules, scratch))
    await writeFile(join(folder, INITRD_FILE), initrd)
    signal.throwIfAborted()
    const hash = sha256(await readFile(join(folder, KERNEL_FILE)), initrd).slice(0, HASH_LENGTH)
    return `${kernel.version.replaceAll(/[^\w.+~-]/g, '_')}-${hash}`
  })
  deps.log.info({ version, ms: Math.round(performance.now() - began) }, 'the guest system was built')
  return version
}

async function findKernel ({ commands, config, folder }: SystemsDeps, signal: AbortSignal): Promise<KernelSource> {
  if (config.kernelPath !== undefined && config.modulesPath !== undefined) return await ownKernel(config.kernelPath, config.modulesPath)
  if (config.kernelPath !== undefined || config.modulesPath !== undefined) {
    throw KernelUnavailable('kernelPath and modulesPath of the plugin "guest" belong together, and only one of them is set')
  }
  return await packagedKernel(commands, config.kernelPackage, config.kernelCache ?? join(folder, 'cache'), signal)
}

async function readInit (path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw InitMissing.from(error, path)
  }
}

function sha256 (...parts: readonly Buffer[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}
