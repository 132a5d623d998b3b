// `npm run pack:server [-- FOLDER]`: the package of the whole of Berth (server, proxy, command, and what plugins of others are written with) as FOLDER/berth-server-VERSION.tgz;
// without FOLDER, in the checkout. Everything that it needs is inside, compiled for this system, so that an installation downloads and compiles nothing. `npm pack` makes the package of the client only.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { packageRoot } from '../../core/package-root.ts'
import { productionPackages } from '../service/production.ts'
import { stageFiles } from '../service/stage.ts'
import { serverManifest } from './manifest.ts'

const execute = promisify(execFile)

async function packServer (folder: string): Promise<string> {
  const work = await mkdtemp(join(folder, '.berth-pack-'))
  try {
    const staged = join(work, 'berth')
    await stageFiles(staged, true)
    const packages = await productionPackages(packageRoot)
    const manifest = serverManifest(JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')), await peersOf(staged, packages))
    await writeFile(join(staged, 'package.json'), JSON.stringify(manifest, undefined, 2))
    for (const path of packages) if (existsSync(join(packageRoot, path, 'binding.gyp'))) await makeComplete(join(staged, path, 'package.json'))
    const { stdout } = await execute('npm', ['pack', staged, '--pack-destination', work, '--silent'], { cwd: work })
    const target = join(folder, `berth-server-${manifest.version}.tgz`)
    await rename(join(work, stdout.trim()), target)
    return target
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** The peer dependencies of the packages: npm bundles none by itself, and would download them when anything else is installed later. */
async function peersOf (staged: string, packages: readonly string[]): Promise<Record<string, string>> {
  const contents = await Promise.all(packages.map(async (path) => JSON.parse(await readFile(join(staged, path, 'package.json'), 'utf8')) as { readonly peerDependencies?: Record<string, string> }))
  const wanted = contents.flatMap(({ peerDependencies = {} }) => Object.entries(peerDependencies))
  return Object.fromEntries(wanted.filter(([name]) => packages.includes(`node_modules/${name}`)))
}

/** Changes the manifest of a package with a compiled native module, so that npm neither leaves the module out, because of the list of files, nor compiles it again. */
async function makeComplete (file: string): Promise<void> {
  const { files: _files, scripts: _scripts, ...rest } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
  await writeFile(file, JSON.stringify({ ...rest, gypfile: false }, undefined, 2))
}

console.log(await packServer(resolve(process.argv[2] ?? packageRoot)))
