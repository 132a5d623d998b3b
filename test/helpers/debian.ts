// A small Debian system as a tar archive, for tests that need the programs that people really use: made of packages that apt fetches, without
// installing anything on this machine, and kept in the cache of this project.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'

const commands = createHostCommands()
const cache = join(packageRoot, '.cache/debian')

/** What those depend on and no test uses, most of it for the set-up of a machine. apt is told that it is there. */
const needless = [
  'adduser', 'containernetworking-plugins', 'debconf', 'dmsetup', 'dpkg-dev', 'gnupg', 'golang-github-containers-common', 'golang-github-containers-image', 'init-system-helpers', 'iptables',
  'liberror-perl', 'libpam0g', 'lsb-base', 'mawk', 'media-types', 'passwd', 'perl', 'perl-base', 'sysvinit-utils', 'usrmerge'
]
const files: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/bash\n_apt:x:100:65534::/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/hosts': '127.0.0.1 localhost\n'
}
const leftOut = ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/info', 'usr/share/perl*', 'usr/share/zoneinfo']

/** What an archive does without, besides what none has. */
export interface LeftOut {
  /** packages that the wanted ones depend on */
  readonly packages: readonly string[]
  /** folders, without a slash at the beginning, whose content is not unpacked */
  readonly folders: readonly string[]
}

/** The path of an archive with these packages and what they need, made first when it is not in the cache. */
export async function debianArchive (packages: readonly string[], without: LeftOut = { packages: [], folders: [] }): Promise<string> {
  // The recipe is this file: when it changes, the archive does.
  const recipe = createHash('sha256').update(JSON.stringify([packages, without, needless, files, leftOut, buildRoot.toString(), unpack.toString(), makeStore.toString()])).digest('hex').slice(0, 12)
  const archive = join(cache, `${recipe}.tar`)
  if (existsSync(archive)) return archive
  await mkdir(cache, { recursive: true })
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    await fetchPackages(work, packages, [...needless, ...without.packages])
    const root = await buildRoot(work, [...leftOut, ...without.folders])
    await commands.run('tar', ['--create', `--file=${join(work, 'system.tar')}`, '--sort=name', '--mtime=@0', '--numeric-owner', `--directory=${root}`, '.'])
    await rename(join(work, 'system.tar'), archive)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return archive
}

/** Fetches the packages into `archives`. apt knows only what is in `work`: nothing of this machine's packages is read, locked or changed. */
async function fetchPackages (work: string, packages: readonly string[], needless: readonly string[]): Promise<void> {
  for (const folder of ['archives/partial', 'lists/partial']) await mkdir(join(work, folder), { recursive: true })
  await writeFile(join(work, 'status'), needless.map((name) =>
    `Package: ${name}\nStatus: install ok installed\nVersion: 999:1\nArchitecture: all\nMulti-Arch: foreign\nMaintainer: nobody <nobody@localhost>\nDescription: left out\n\n`).join(''))
  const options = [
    `Dir::State::status=${work}/status`, `Dir::State::lists=${work}/lists/`, `Dir::State::extended_states=${work}/extended`, `Dir::Cache=${work}/`,
    `Dir::Cache::archives=${work}/archives/`, 'APT::Sandbox::User=root', 'APT::Install-Recommends=false', 'Acquire::Retries=3', 'Acquire::Languages=none'
  ].flatMap((option) => ['-o', option])
  await commands.run('apt-get', [...options, '--quiet', 'update'], { timeoutMs: 120_000 })
  await commands.run('apt-get', [...options, '--quiet', '--yes', '--download-only', 'install', ...packages], { timeoutMs: 300_000 })
}

async function buildRoot (work: string, leftOut: readonly string[]): Promise<string> {
  const root = join(work, 'root')
  for (const folder of ['etc', 'dev', 'proc', 'sys', 'tmp', 'root', 'run', 'var/tmp', 'usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64']) await mkdir(join(root, folder), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(root, name))
  for (const name of (await readdir(join(work, 'archives'))).filter((each) => each.endsWith('.deb'))) await unpack(join(work, 'archives', name), root, leftOut)
  for (const [path, content] of Object.entries(files)) await writeFile(join(root, path), content)
  await symlink('bash', join(root, 'usr/bin/sh'))
  await commands.run('chmod', ['1777', join(root, 'tmp'), join(root, 'var/tmp')])
  await makeStore(root)
  return root
}

async function unpack (packageFile: string, root: string, leftOut: readonly string[]): Promise<void> {
  // Two programs and a pipe, since what a host command prints is kept as text.
  const from = spawn('dpkg-deb', ['--fsys-tarfile', packageFile], { stdio: ['ignore', 'pipe', 'inherit'] })
  const to = spawn('tar', ['--extract', '--keep-directory-symlink', `--directory=${root}`, ...leftOut.map((path) => `--exclude=./${path}/*`)], { stdio: [from.stdout, 'ignore', 'inherit'] })
  const codes = await Promise.all([from, to].map(async (child) => String((await once(child, 'exit'))[0])))
  if (codes.join() !== '0,0') throw new Error(`${packageFile} could not be unpacked`)
}

/** What the set-up of ca-certificates does, if that is there: the file with all authorities, and the folder with a link for each. */
async function makeStore (root: string): Promise<void> {
  const folder = join(root, 'usr/share/ca-certificates/mozilla')
  if (!existsSync(folder)) return
  const authorities = await readdir(folder)
  await writeFile(join(root, 'etc/ca-certificates.conf'), authorities.map((name) => `mozilla/${name}\n`).join(''))
  // Its scripts write to it; in a guest it is a device.
  await writeFile(join(root, 'dev/null'), '')
  await commands.run('chroot', [root, '/usr/sbin/update-ca-certificates'], { timeoutMs: 60_000 })
  await rm(join(root, 'dev/null'))
}
