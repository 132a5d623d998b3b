// The packages below node_modules that the program needs at run time: those of the lock file that are not for development only.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

interface LockedPackage { readonly dev?: boolean, readonly devOptional?: boolean, readonly optional?: boolean, readonly dependencies?: Readonly<Record<string, string>>, readonly optionalDependencies?: Readonly<Record<string, string>> }

/** Paths relative to the package's folder, such as `node_modules/a/node_modules/b`. Throws when one is not installed. */
export async function productionPackages (folder: string): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(folder, 'package-lock.json'), 'utf8')) as { packages: Record<string, LockedPackage> }
  const builder = builderOf(packages)
  const needed = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true && !builder.has(path))
  return needed.flatMap(([path, { optional }]) => {
    if (existsSync(join(folder, path))) return [path]
    // Such as packages for other systems.
    if (optional === true) return []
    throw new Error(`${path} is missing: run "npm ci" first`)
  })
}

/** Optional dependencies of this package itself are tools for the build; they consist of several packages, some of them one for each system. */
function builderOf (packages: Readonly<Record<string, LockedPackage>>): ReadonlySet<string> {
  const pathsOf = (names: Readonly<Record<string, string>> = {}): string[] => Object.keys(names).map((name) => `node_modules/${name}`)
  const found = new Set(pathsOf(packages['']?.optionalDependencies))
  for (const path of found) {
    const { optionalDependencies, dependencies } = packages[path] ?? {}
    for (const other of [...pathsOf(optionalDependencies), ...pathsOf(dependencies)]) if (packages[other]?.optional === true) found.add(other)
  }
  return found
}
