// Removes compiled files without a source. The compiler leaves its old output where it is, and a server takes each plugin and each migration that it finds there: after
// `git checkout` of an earlier version, or an update without some plugin, it would run those of another version. A step of the build: `node dist/setup/compiled-orphans.js`.
import { existsSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../core/package-root.ts'

/** Bundles that lie among the compiled files, under names of their own: see bundled-proxy.js. */
const BUNDLED: Readonly<Record<string, string>> = { 'proxy/main': 'proxy/parent/main', 'proxy/worker': 'proxy/workers/main' }
/** Bundles of packages: see bundled-packages.js. */
const PACKAGES = 'node_modules'
const COMPILED = /\.(?:js|js\.map|d\.ts)$/

/** Paths below `dist` of files that were compiled of sources that are gone, and of folders without one. Other programs' output in a folder that has a source is never one. @param root the checkout */
export async function orphans (root: string): Promise<string[]> {
  // The compiler's own list; what it leaves out is bundled into a folder of its own.
  const { include, exclude } = JSON.parse(await readFile(join(root, 'tsconfig.json'), 'utf8')) as { readonly include: readonly string[], readonly exclude: readonly string[] }
  const found: string[] = []
  const folders = include.filter((folder) => existsSync(join(root, 'dist', folder)))
  for (const folder of folders) {
    if (!existsSync(join(root, folder))) {
      found.push(folder)
      continue
    }
    for (const entry of await readdir(join(root, 'dist', folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (!entry.isDirectory()) {
        if (COMPILED.test(path) && !hasSource(root, path.replace(COMPILED, ''))) found.push(path)
      } else if (entry.name !== PACKAGES && !(exclude.includes(path) && existsSync(join(root, path)))) folders.push(path)
    }
  }
  return found
}

function hasSource (root: string, name: string): boolean {
  return existsSync(join(root, `${BUNDLED[name] ?? name}.ts`))
}

export async function removeOrphans (root: string): Promise<string[]> {
  const found = await orphans(root)
  for (const path of found) await rm(join(root, 'dist', path), { recursive: true, force: true })
  return found
}

if (process.argv[1] === import.meta.filename) {
  for (const path of await removeOrphans(packageRoot)) console.log(`removed dist/${path}: it has no source any more`)
}
