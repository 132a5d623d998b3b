// Downloads Debian packages with their dependencies, by apt, without reading, locking or changing this machine's own packages.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'

const UPDATE_TIMEOUT_MS = 120_000
const DOWNLOAD_TIMEOUT_MS = 600_000

/**
 * Programs that packages depend on for their own set-up, which never runs here, or that a build does not need. apt is told that they are installed, and finds everything
 * else by itself: no library may be listed, since the libraries that a program needs differ from release to release.
 */
export const NEEDLESS = [
  'adduser', 'containernetworking-plugins', 'debconf', 'dmsetup', 'dpkg-dev', 'gnupg', 'golang-github-containers-common', 'golang-github-containers-image', 'init-system-helpers', 'iptables',
  'liberror-perl', 'lsb-base', 'mawk', 'media-types', 'passwd', 'perl', 'perl-base', 'sysvinit-utils', 'uidmap', 'usrmerge'
] as const

export interface FetchOptions {
  /** packages to leave out though the wanted ones depend on them */
  readonly without?: readonly string[]
  readonly signal?: AbortSignal
}

/** Downloads the packages into the folder `archives` of `work`, which must be an empty folder. */
export async function fetchPackages (commands: HostCommands, work: string, packages: readonly string[], { without = [], signal }: FetchOptions = {}): Promise<void> {
  for (const folder of ['archives/partial', 'lists/partial']) await mkdir(join(work, folder), { recursive: true })
  await writeFile(join(work, 'status'), [...NEEDLESS, ...without].map((name) =>
    `Package: ${name}\nStatus: install ok installed\nVersion: 999:1\nArchitecture: all\nMulti-Arch: foreign\nMaintainer: nobody <nobody@localhost>\nDescription: left out\n\n`).join(''))
  const options = [
    `Dir::State::status=${work}/status`, `Dir::State::lists=${work}/lists/`, `Dir::State::extended_states=${work}/extended`, `Dir::Cache=${work}/`,
    `Dir::Cache::archives=${work}/archives/`, 'APT::Sandbox::User=root', 'APT::Install-Recommends=false', 'Acquire::Retries=3', 'Acquire::Languages=none'
  ].flatMap((option) => ['-o', option])
  await commands.run('apt-get', [...options, '--quiet', 'update'], { timeoutMs: UPDATE_TIMEOUT_MS, signal })
  await commands.run('apt-get', [...options, '--quiet', '--yes', '--download-only', 'install', ...packages], { timeoutMs: DOWNLOAD_TIMEOUT_MS, signal })
}
