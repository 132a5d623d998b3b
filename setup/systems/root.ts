// A system as a folder, made once and kept: packages that apt installs in it stay for the next run.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import { hostMirror, type Mirror } from './mirror.ts'
import { SUITES, type Suite, type SuiteName } from './suites.ts'

const DEBOOTSTRAP_TIMEOUT_MS = 900_000
const APT_TIMEOUT_MS = 900_000
const REACH_TIMEOUT_MS = 60_000
/** What its npm would download: Node, and the headers for compiling modules. */
const OWN_NODE = ['nodejs', 'libnode-dev']
/** A mirror that is some weeks behind is accepted: its packages are signed all the same. */
const SETTINGS = ['Acquire::Check-Valid-Until "false";', 'Acquire::Languages "none";', 'APT::Install-Recommends "false";']

export function cacheFolder (): string {
  return process.env['BERTH_SYSTEMS_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'berth/systems')
}

/** Why this system cannot be made or entered here, in one line; `undefined` when it can. */
export async function whyNot (commands: HostCommands, name: SuiteName): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'a system of its own needs root'
  if (!await canEnter(commands)) return `a system of its own needs mount and process namespaces, and an overlay in ${cacheFolder()}: unshare --mount --pid, or mount -t overlay, does not work here`
  if (existsSync(join(cacheFolder(), name))) return undefined
  if (!['/usr/sbin/debootstrap', '/usr/bin/debootstrap'].some(existsSync)) return 'debootstrap is not installed: the package debootstrap'
  const mirror = await hostMirror(commands)
  if (mirror === undefined) return 'apt knows no archive of Debian here: add one to its sources'
  return await isReachable(commands, mirror, name) ? undefined : `apt cannot reach ${SUITES[name].codename} in its archive of Debian from here`
}

/** Tried in the way in which `enter.sh` does it. */
async function canEnter (commands: HostCommands): Promise<boolean> {
  await mkdir(cacheFolder(), { recursive: true })
  const folder = await mkdtemp(join(cacheFolder(), 'try-'))
  try {
    for (const name of ['upper', 'work', 'top']) await mkdir(join(folder, name))
    const mount = ['mount', '-t', 'overlay', '-o', `lowerdir=${packageRoot},upperdir=${folder}/upper,workdir=${folder}/work`, 'overlay', `${folder}/top`]
    return await commands.run('unshare', ['--mount', '--pid', '--fork', '--propagation', 'private', ...mount], { timeoutMs: REACH_TIMEOUT_MS }).then(() => true, () => false)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** With apt's own downloader, which uses apt's settings. */
async function isReachable (commands: HostCommands, { url }: Mirror, name: SuiteName): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-mirror-'))
  try {
    return await commands.run('/usr/lib/apt/apt-helper', ['download-file', `${url}/dists/${SUITES[name].codename}/InRelease`, join(folder, 'InRelease')], { timeoutMs: REACH_TIMEOUT_MS }).then(() => true, () => false)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The folder of the suite's root, made when it does not exist. `say` gets a line for each step that takes long. */
export async function systemRoot (commands: HostCommands, name: SuiteName, say: (line: string) => void): Promise<string> {
  const root = join(cacheFolder(), name)
  if (existsSync(root)) return root
  const mirror = await hostMirror(commands)
  if (mirror === undefined) throw new Error('apt knows no archive of Debian here')
  await mkdir(cacheFolder(), { recursive: true })
  const work = `${root}.making-${randomBytes(4).toString('hex')}`
  try {
    await make(commands, SUITES[name], work, mirror, say)
    await rename(work, root)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return root
}

async function make (commands: HostCommands, suite: Suite, work: string, mirror: Mirror, say: (line: string) => void): Promise<void> {
  say(`debootstrap of ${suite.codename}`)
  await commands.run('debootstrap', ['--variant=minbase', suite.codename, work, mirror.url], { timeoutMs: DEBOOTSTRAP_TIMEOUT_MS })
  await writeFile(join(work, 'etc/apt/apt.conf.d/99host'), [...mirror.settings, ...SETTINGS, ''].join('\n'))
  await writeFile(join(work, 'usr/sbin/policy-rc.d'), '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  if (suite.from !== undefined) await writeFile(join(work, 'etc/apt/sources.list.d/other.list'), `deb ${mirror.url} ${suite.from.codename} main\n`)
  // A name that the host can resolve must resolve there, too.
  await commands.run('cp', ['--dereference', '/etc/resolv.conf', '/etc/hosts', join(work, 'etc')])
  say('apt: the packages that everything else needs')
  const apt = async (...args: string[]): Promise<void> => {
    await commands.run('chroot', [work, 'apt-get', '-q', '-y', ...args], { timeoutMs: APT_TIMEOUT_MS, env: { DEBIAN_FRONTEND: 'noninteractive' } })
  }
  await apt('update')
  await apt('install', 'ca-certificates', 'debianutils', ...suite.ownNode ? OWN_NODE : ['libatomic1'])
  if (suite.from !== undefined) await apt('install', '-t', suite.from.codename, ...suite.from.packages)
  await apt('clean')
}
