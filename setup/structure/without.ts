// A checkout without the folder of one plugin: a tree of links to what stays, which the compiler of the build compiles.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { builtInFolder, findBuiltIns, importPlugin } from '../../core/plugins/discover.ts'
import { belongsTo } from './deleted.ts'
import type { Source } from './imports.ts'

const execute = promisify(execFile)

/** What is compiled. */
export const FOLDERS = ['core', 'plugins', 'proxy', 'cli', 'setup', 'test', 'bench'] as const
/** What is needed besides: tests read it, or the compiler does. */
const BESIDE = ['config', 'systemd', 'examples', 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'package.json', 'package-lock.json', 'tsconfig.json', '.oxlintrc.json']
const COMPILER = 'node_modules/typescript-native/bin/tsc'

export interface Remains {
  /** the tree; `close` removes it */
  readonly folder: string
  /** plugins that were removed with it, since they require what it provides */
  readonly dependents: readonly string[]
  /** how many files were removed */
  readonly gone: number
  /** Compiles the whole tree, into its `dist` or without output. @returns the compiler's messages, a line for each problem */
  compile (options?: { readonly emit?: boolean }): Promise<readonly string[]>
  close (): Promise<void>
}

/** The files that stay without these plugins but import removed ones. It is quick, since only imports are looked at. */
export function importersLeft (sources: readonly Source[], plugins: readonly string[]): readonly string[] {
  const isGone = (file: string): boolean => plugins.some((plugin) => belongsTo(plugin, file))
  return sources.filter(({ file, imports }) => !isGone(file) && imports.some(({ to }) => isGone(to))).map(({ file }) => file)
}

/** The plugin, and those that require it, by the manifests of this build. */
export async function withDependents (plugin: string): Promise<readonly string[]> {
  const builtIns = await findBuiltIns(builtInFolder)
  const manifests = await Promise.all([...builtIns].map(async ([id, file]) => (await importPlugin(id, file)).manifest))
  const gone = [plugin]
  for (const id of gone) {
    const lost = manifests.find((manifest) => manifest.id === id)?.provides ?? []
    gone.push(...manifests.filter((manifest) => !gone.includes(manifest.id) && manifest.requires.some((key) => lost.some((provided) => provided === key))).map((manifest) => manifest.id))
  }
  return gone
}

const PREFIX = 'without-'

/** Trees left by processes that were killed. */
export async function removeLeftovers (cache: string): Promise<void> {
  for (const name of await readdir(cache)) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await rm(join(cache, name), { recursive: true, force: true })
  }
}

/** @param root the checkout, built; the tree stands in its `.cache`, so that its files can be links */
export async function without (root: string, plugin: string): Promise<Remains> {
  const plugins = await withDependents(plugin)
  await mkdir(join(root, '.cache'), { recursive: true })
  await removeLeftovers(join(root, '.cache'))
  const folder = await mkdtemp(join(root, `.cache/${PREFIX}${process.pid}-`))
  const close = async (): Promise<void> => { await rm(folder, { recursive: true, force: true }) }
  try {
    for (const name of FOLDERS) await execute('cp', ['-al', join(root, name), join(folder, name)])
    for (const name of BESIDE) if (existsSync(join(root, name))) await cp(join(root, name), join(folder, name), { recursive: true })
    await symlink('../../node_modules', join(folder, 'node_modules'))
    const files = (await Promise.all(FOLDERS.map(async (name) => (await readdir(join(folder, name), { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))))).flat()
    const gone = files.filter((file) => plugins.some((each) => belongsTo(each, file)))
    for (const file of gone) await rm(join(folder, file))
    // An empty folder of a plugin would be taken for one that is not built.
    for (const place of new Set(gone.map((file) => dirname(file)))) await removeIfEmpty(folder, place)
    return { folder, dependents: plugins.slice(1), gone: gone.length, compile: async ({ emit = false } = {}) => await compile(folder, emit), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function removeIfEmpty (folder: string, place: string): Promise<void> {
  if (!place.includes('/') || !existsSync(join(folder, place)) || (await readdir(join(folder, place))).length > 0) return
  await rm(join(folder, place), { recursive: true })
  await removeIfEmpty(folder, dirname(place))
}

async function compile (folder: string, emit: boolean): Promise<readonly string[]> {
  const args = ['-p', '.', '--incremental', 'false', '--pretty', 'false', ...emit ? [] : ['--noEmit']]
  // What runs in the tree starts commands.
  if (emit) await execute('sh', [join(folder, 'core/build-program.sh'), join(folder, 'core/process/spawner'), join(folder, 'dist/core/process/berth-spawner')])
  return await execute(join(folder, COMPILER), args, { cwd: folder, maxBuffer: 2 ** 26 }).then(() => [], (error: unknown) => {
    const { stdout } = error as { readonly stdout?: string }
    if (stdout === undefined || stdout === '') throw error
    return stdout.trim().split('\n')
  })
}
