// The location of the package on disk: the folder of package.json, the same for compiled output and for sources.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

function findRoot (from: string): string {
  if (existsSync(join(from, 'package.json'))) return from
  const parent = dirname(from)
  if (parent === from) throw new Error('package.json was not found above the program: the installation is incomplete')
  return findRoot(parent)
}

/** Absolute path of the package's top folder, for files that are not compiled (SQL, C, YAML, HTML). */
export const packageRoot: string = findRoot(dirname(fileURLToPath(import.meta.url)))
