// Says which packages below node_modules the program needs when it runs: those of the lock file that no developer alone needs.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

interface LockedPackage { readonly dev?: boolean, readonly devOptional?: boolean, readonly optional?: boolean, readonly optionalDependencies?: Readonly<Record<string, string>> }

/** Paths relative to the package's folder, such as `node_modules/a/node_modules/b`. Throws when one is not installed. */
export async function productionPackages (folder: string): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as { packages: Record<string, LockedPackage> }
  const compiler = compilerOf(packages)
  const needed = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true && !compiler.has(path))
  return needed.flatMap(([path, { optional }]) => {
    if (existsSync(join(folder, path))) return [path]
    // Packages for other systems, say.
    if (optional === true) return []
    throw new Error(`${path} is missing: run "npm ci" first`)
  })
}

/** What this package asks for as optional is what compiles it; it is in several packages, one for each system. */
function compilerOf (packages: Readonly<Record<string, LockedPackage>>): ReadonlySet<string> {
  const optionalOf = (path: string): string[] => Object.keys(packages[path]?.optionalDependencies ?? {}).map((name) => `node_modules/${name}`)
  const own = optionalOf('')
  return new Set([...own, ...own.flatMap(optionalOf)])
}
