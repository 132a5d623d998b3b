// This package on disks: its thousands of small files would each take the machine several messages to this host.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import { kept } from './kept.ts'

const TIMEOUT_MS = 120_000
const DEPENDENCIES = 'dependencies-'
const COMPILED = ['bench', 'cli', 'core', 'node_modules', 'plugins', 'proxy', 'setup', 'test']
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

/** Makes an image of what is compiled, by way of the folder `staging`. */
export async function imageOfPackage (commands: HostCommands, staging: string, image: string): Promise<void> {
  const compiled = relative(packageRoot, fileURLToPath(new URL('../..', import.meta.url)))
  await imageOf(commands, ['package.json', GUEST, ...COMPILED.map((name) => join(compiled, name)).filter((path) => existsSync(join(packageRoot, path)))], staging, image)
}

/** The image of all that is not of this package itself, and is made once for a checkout: npm's packages, and the guests' systems. */
export async function imageOfDependencies (commands: HostCommands): Promise<string> {
  const lock = await readFile(join(packageRoot, 'node_modules/.package-lock.json'), 'utf8')
  const paths = [...await systems(), ...packagesOf(lock)]
  const key = createHash('sha256').update(lock).update(paths.join('\n')).digest('hex').slice(0, 16)
  const image = await kept(`${DEPENDENCIES}${key}.erofs`, async (path) => { await imageOf(commands, paths, `${path}.staging`, path) })
  // A host that still runs has the one that it was given open.
  const others = (await readdir(dirname(image))).filter((name) => name.startsWith(DEPENDENCIES) && name !== basename(image))
  for (const name of others) await rm(join(dirname(image), name), { force: true })
  return image
}

async function imageOf (commands: HostCommands, paths: readonly string[], staging: string, image: string): Promise<void> {
  try {
    await mkdir(staging)
    await commands.run('cp', ['--archive', '--parents', '--target-directory', staging, ...paths], { cwd: packageRoot, timeoutMs: TIMEOUT_MS })
    await commands.run('mkfs.erofs', ['--quiet', image, staging], { timeoutMs: TIMEOUT_MS })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

/** The packages that the server needs, and tests. */
function packagesOf (lock: string): string[] {
  const { packages }: { packages: Packages } = JSON.parse(lock)
  const needed = new Set(Object.entries(packages).filter(([, { dev }]) => dev !== true).map(([path]) => path))
  for (const name of FOR_TESTS) addWithDependencies(packages, `node_modules/${name}`, needed)
  return outermost([...needed].filter((path) => existsSync(join(packageRoot, path))))
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
