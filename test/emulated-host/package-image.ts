// This package on a disk: its thousands of small files would each take the machine several messages to this host.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'

const TIMEOUT_MS = 120_000
const COMPILED = ['cli', 'core', 'node_modules', 'plugins', 'proxy', 'setup', 'test']
/** the guests' first process, which is there whatever folder the rest is compiled to */
const GUEST = 'dist/guest'
/** where finished systems of guests are; a large one with the kernel's headers is not for tests there */
const SYSTEMS = '.cache/system'
/** what tests need of packages that the server does without */
const FOR_TESTS = ['tap', 'tap-parser', '@onkernel/hypeman']
/** loaded by nothing that runs here, and large */
const NOT_LOADED = ['typescript']

interface Locked { readonly dev?: boolean, readonly dependencies?: Readonly<Record<string, string>>, readonly peerDependencies?: Readonly<Record<string, string>> }
type Packages = Readonly<Record<string, Locked>>

/** Makes the image, by way of the folder `staging`. */
export async function imageOfPackage (commands: HostCommands, staging: string, image: string): Promise<void> {
  const { packages }: { packages: Packages } = JSON.parse(await readFile(join(packageRoot, 'node_modules/.package-lock.json'), 'utf8'))
  const needed = new Set(Object.entries(packages).filter(([, { dev }]) => dev !== true).map(([path]) => path))
  for (const name of FOR_TESTS) addWithDependencies(packages, `node_modules/${name}`, needed)
  const present = [...needed].filter((path) => existsSync(join(packageRoot, path)))
  const compiled = relative(packageRoot, fileURLToPath(new URL('../..', import.meta.url)))
  await mkdir(staging)
  await commands.run('cp', [
    '--archive', '--parents', '--target-directory', staging, 'package.json', GUEST, ...await systems(), ...outermost(present), ...COMPILED.map((name) => join(compiled, name)).filter((path) => existsSync(join(packageRoot, path)))
  ], { cwd: packageRoot, timeoutMs: TIMEOUT_MS })
  await commands.run('mkfs.erofs', ['--quiet', image, staging], { timeoutMs: TIMEOUT_MS })
  await rm(staging, { recursive: true })
}

async function systems (): Promise<string[]> {
  const folder = join(packageRoot, SYSTEMS)
  if (!existsSync(folder)) return []
  return (await readdir(folder)).filter((name) => !/^\.|^headers-|^cache$/.test(name)).map((name) => join(SYSTEMS, name))
}

function addWithDependencies (packages: Packages, path: string, found: Set<string>): void {
  if (found.has(path)) return
  found.add(path)
  const { dependencies, peerDependencies } = packages[path] ?? {}
  for (const name of Object.keys({ ...dependencies, ...peerDependencies })) {
    const at = NOT_LOADED.includes(name) ? undefined : resolve(packages, path, name)
    if (at !== undefined) addWithDependencies(packages, at, found)
  }
}

/** Where Node finds a package that another one asks for. */
function resolve (packages: Packages, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name)
    if (packages[path] !== undefined) return path
    if (folder === '.') return undefined
  }
}

/** A folder is copied with all that is in it. */
function outermost (paths: readonly string[]): string[] {
  const known = new Set(paths)
  return paths.filter((path) => {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) if (known.has(parent)) return false
    return true
  })
}
