// Stages the program's folder: for a service, or to be packed.
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { copyInto } from './copy.ts'
import { isNeeded } from './package-files.ts'
import { PROGRAM, RECORD } from './places.ts'
import { productionPackages } from './production.ts'
import type { InstallRecord } from './record.ts'

/** tsc's output that runs now */
const COMPILED = join(import.meta.dirname, '../..')
const COMPILED_PARTS = ['cli', 'core', 'plugins', 'proxy', 'setup/service', 'guest']
/** packages in few files, by setup/bundled-packages.js: only quicker */
const BUNDLED = 'node_modules'
const DOCUMENTS = ['package.json', 'README.md', 'config', 'proxy/README.md', 'systemd/README.md', 'systemd/network-namespace', 'systemd/release-control-groups']

const WRAPPER = `#!/bin/sh
# The command \`berth\`, for the server and for its clients.
exec ${PROGRAM}/bin/node ${PROGRAM}/dist/cli/main.js "$@"
`

export async function stageProgram (folder: string, node: string, record: InstallRecord): Promise<void> {
  await stageFiles(folder, false)
  await placeNode(folder, node)
  await writeWhole(join(folder, 'bin/berth'), WRAPPER, 0o755)
  await writeWhole(join(folder, RECORD), `${JSON.stringify(record, null, 2)}\n`, 0o644)
}

/**
 * Copies the server, the proxy and the command with the packages that they need, and their documents. `folder` must not exist yet.
 * @param withTypes whether plugins are compiled against the copy
 */
export async function stageFiles (folder: string, withTypes: boolean): Promise<void> {
  await mkdir(folder, { mode: 0o755 })
  await chmod(folder, 0o755)
  for (const part of COMPILED_PARTS) {
    const source = join(COMPILED, part)
    if (!existsSync(source)) throw new Error(`${source} is missing: run "npm run build" first`)
    copyInto(source, join(folder, 'dist', part), path => !path.endsWith('.map'))
  }
  if (existsSync(join(COMPILED, BUNDLED))) copyInto(join(COMPILED, BUNDLED), join(folder, 'dist', BUNDLED))
  for (const path of await productionPackages(packageRoot)) {
    const isCompiled = existsSync(join(packageRoot, path, 'binding.gyp'))
    copyInto(join(packageRoot, path), join(folder, path), inner => isNeeded(inner, { withTypes, isCompiled }))
  }
  for (const path of [...DOCUMENTS, ...await pluginDocuments()]) copyInto(join(packageRoot, path), join(folder, path))
}

async function pluginDocuments (): Promise<string[]> {
  const ids = await readdir(join(packageRoot, 'plugins'))
  return ids.map(id => `plugins/${id}/README.md`).filter(path => existsSync(join(packageRoot, path)))
}

/** A link if the services can reach the file; else a copy, as for a Node in somebody's home. */
async function placeNode (folder: string, node: string): Promise<void> {
  await mkdir(join(folder, 'bin'), { mode: 0o755 })
  if (await isForAll(node)) await symlink(node, join(folder, 'bin/node'))
  else copyInto(node, join(folder, 'bin/node'))
}

async function isForAll (program: string): Promise<boolean> {
  // ProtectHome and PrivateTmp hide these from the proxy.
  if (/^\/(home|root|run|tmp|var\/tmp)\//.test(program)) return false
  // It may exist only on the target system.
  if (!existsSync(program)) return true
  for (let folder = dirname(program); folder !== '/'; folder = dirname(folder)) if (((await stat(folder)).mode & 0o005) !== 0o005) return false
  return ((await stat(program)).mode & 0o005) === 0o005
}

async function writeWhole (path: string, text: string, mode: number): Promise<void> {
  await writeFile(path, text)
  // The umask reduces the mode given to writeFile.
  await chmod(path, mode)
}
