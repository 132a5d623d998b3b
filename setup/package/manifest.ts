// The package.json of a package, with its dependencies inside and no scripts, so that an installation downloads and compiles nothing.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'

export interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly files: readonly string[]
  readonly [field: string]: unknown
}

const KEPT = ['name', 'version', 'description', 'type', 'engines', 'bin', 'man'] as const
const IMPORTED = /(?:\bfrom|\bimport\(|^import) ?'([^'.][^']*)'/gm

/** For the client: its files, and those of the dependencies that they import. @param root the checkout, built */
export async function clientManifest (root: string, whole: Manifest): Promise<Record<string, unknown>> {
  const imported = await importedPackages(root, whole.files.filter((path) => !path.startsWith('!')))
  const names = Object.keys(whole.dependencies).filter((name) => imported.has(name))
  return {
    ...Object.fromEntries([...KEPT, 'files'].map((field) => [field, whole[field]])),
    dependencies: Object.fromEntries(names.map((name) => [name, whole.dependencies[name]])),
    bundleDependencies: names
  }
}

/** For everything that runs on a host, for the architecture on which it was built. @param peers the peer dependencies, with their versions */
export function serverManifest (whole: Manifest, peers: Readonly<Record<string, string>>): Record<string, unknown> & { readonly version: string } {
  const dependencies = { ...peers, ...whole.dependencies }
  return {
    ...Object.fromEntries([...KEPT, 'exports'].map((field) => [field, whole[field]])),
    version: whole.version,
    os: [process.platform],
    cpu: [process.arch],
    dependencies,
    bundleDependencies: Object.keys(dependencies)
  }
}

async function importedPackages (root: string, paths: readonly string[]): Promise<Set<string>> {
  const names = new Set<string>()
  for (const path of paths) {
    for (const file of await scriptsOf(join(root, path))) {
      for (const [, specifier = ''] of (await readFile(file, 'utf8')).matchAll(IMPORTED)) names.add(specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/'))
    }
  }
  return names
}

async function scriptsOf (path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  return (await readdir(path, { recursive: true })).filter((name) => name.endsWith('.js')).map((name) => join(path, name))
}
