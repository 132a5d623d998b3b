// The checkouts of the cells: one is cloned and prepared, and the others are copies of it, or clones.
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { arch } from 'node:os'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import type { Cell } from './cells.ts'

const PREPARE_TIMEOUT_MS = 1_800_000
const COPY_TIMEOUT_MS = 300_000
/** exists in the cache of the prepared checkout once that is complete */
const READY = '.cache/matrix'

/** The checkout that the others are copied from. An existing one is reused: a second run of the matrix in the same folder is shorter. */
export async function prepareBase (commands: HostCommands, folder: string): Promise<string> {
  const base = join(folder, 'base')
  if (existsSync(join(base, READY))) return base
  await rm(base, { recursive: true, force: true })
  await clone(commands, base)
  await commands.run('sh', [join(base, 'setup/prepare.sh'), 'server', 'network', 'quickstart', 'build', 'tests', 'systems'], { timeoutMs: PREPARE_TIMEOUT_MS, env: environment() })
  // It also fills the cache of kernels.
  await commands.run('sh', [join(base, 'setup/quickstart.sh')], { timeoutMs: PREPARE_TIMEOUT_MS, env: environment() })
  await writeFile(join(base, READY), '')
  return base
}

/** npm's settings are copied with it. */
function environment (): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The commit of this checkout. */
async function clone (commands: HostCommands, to: string): Promise<void> {
  await commands.run('git', ['clone', '--quiet', '--no-local', '--depth=1', packageRoot, to], { timeoutMs: COPY_TIMEOUT_MS })
}

export async function makeCheckout (commands: HostCommands, { base, to, cell, owner }: { readonly base: string, readonly to: string, readonly cell: Cell, readonly owner: number }): Promise<void> {
  await rm(to, { recursive: true, force: true })
  if (cell.checkout === 'bare') {
    await clone(commands, to)
  } else {
    await copy(commands, base, to, cell.isOthers === true)
  }
  for (const name of cell.without ?? []) await rm(join(to, name), { recursive: true, force: true })
  if (cell.isOthers === true) await commands.run('chown', ['--recursive', `${owner}:${owner}`, to], { timeoutMs: COPY_TIMEOUT_MS })
}

/** npm packages, which are many files, become hard links to the same ones, unless their owner changes. npm never writes into an existing file. */
async function copy (commands: HostCommands, base: string, to: string, isWhole: boolean): Promise<void> {
  await mkdir(to)
  for (const entry of await readdir(base)) {
    const how = entry === 'node_modules' && !isWhole ? '--link' : '--reflink=auto'
    await commands.run('cp', ['--archive', how, join(base, entry), to], { timeoutMs: COPY_TIMEOUT_MS })
  }
}

/** The folder with the commands of another Node.js, which npm's registry has as a package. */
export async function nodeCommands (commands: HostCommands, folder: string, version: string): Promise<string> {
  const name = `node-linux-${arch()}`
  const prefix = join(folder, `node-${version}`)
  const bin = join(prefix, 'node_modules', name, 'bin')
  if (!existsSync(bin)) {
    await mkdir(prefix, { recursive: true })
    await commands.run('npm', ['install', '--prefix', prefix, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', `${name}@${version}`], { timeoutMs: PREPARE_TIMEOUT_MS, env: environment() })
  }
  return bin
}
