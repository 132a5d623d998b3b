// A small Debian system as a folder, unpacked from package files. No script of a package runs, except the one that joins the authorities of ca-certificates.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../contracts/services.ts'
import { inRoot } from './in-root.ts'

const FOLDERS = ['etc', 'dev', 'proc', 'sys', 'tmp', 'root', 'run', 'var/tmp', 'usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64']
const FILES: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/bash\n_apt:x:100:65534::/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnogroup:x:65534:\n',
  'etc/hosts': '127.0.0.1 localhost\n'
}
const LEFT_OUT = ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/info', 'usr/share/perl*', 'usr/share/zoneinfo']
const STORE_TIMEOUT_MS = 60_000

/** To be changed with this file's behaviour: it is part of the name of what is made from a root. */
export const ROOT_RECIPE = JSON.stringify([FOLDERS, FILES, LEFT_OUT, 1])

export interface RootOptions {
  /** folders, without a leading slash, whose content is left out, too */
  readonly without?: readonly string[]
  readonly signal?: AbortSignal
}

/** Unpacks the packages in `archives` of `work` into `root` of `work`, and returns that folder. */
export async function makeRoot (commands: HostCommands, work: string, { without = [], signal }: RootOptions = {}): Promise<string> {
  const root = join(work, 'root')
  for (const folder of FOLDERS) await mkdir(join(root, folder), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) await symlink(`usr/${name}`, join(root, name))
  for (const name of (await readdir(join(work, 'archives'))).filter((each) => each.endsWith('.deb'))) await unpack(join(work, 'archives', name), root, [...LEFT_OUT, ...without], signal)
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(root, path), content)
  await symlink('bash', join(root, 'usr/bin/sh'))
  await commands.run('chmod', ['1777', join(root, 'tmp'), join(root, 'var/tmp')], { signal })
  await makeStore(commands, root, signal)
  return root
}

/** Writes a folder as an archive whose bytes depend on the folder's content only. */
export async function archive (commands: HostCommands, root: string, file: string, signal?: AbortSignal): Promise<void> {
  await commands.run('tar', ['--create', `--file=${file}`, '--sort=name', '--mtime=@0', '--numeric-owner', `--directory=${root}`, '.'], { signal })
}

async function unpack (packageFile: string, root: string, leftOut: readonly string[], signal?: AbortSignal): Promise<void> {
  // Two programs and a pipe, since what a host command prints is kept as text.
  const from = spawn('dpkg-deb', ['--fsys-tarfile', packageFile], { stdio: ['ignore', 'pipe', 'inherit'], signal })
  const to = spawn('tar', ['--extract', '--keep-directory-symlink', `--directory=${root}`, ...leftOut.map((path) => `--exclude=./${path}/*`)], { stdio: [from.stdout, 'ignore', 'inherit'], signal })
  const codes = await Promise.all([from, to].map(async (child) => String((await once(child, 'exit'))[0])))
  if (codes.join() !== '0,0') throw new Error(`${packageFile} could not be unpacked`)
}

/** Does what the set-up of ca-certificates would do, if the package is there: the file with all authorities, and the folder with a link for each. */
async function makeStore (commands: HostCommands, root: string, signal?: AbortSignal): Promise<void> {
  const folder = join(root, 'usr/share/ca-certificates/mozilla')
  if (!existsSync(folder)) return
  const authorities = await readdir(folder)
  await writeFile(join(root, 'etc/ca-certificates.conf'), authorities.map((name) => `mozilla/${name}\n`).join(''))
  // Its scripts write to /dev/null; in a guest it is a device.
  await writeFile(join(root, 'dev/null'), '')
  await inRoot(commands, root, ['update-ca-certificates'], { timeoutMs: STORE_TIMEOUT_MS, signal })
  await rm(join(root, 'dev/null'))
}
