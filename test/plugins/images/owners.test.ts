// Unpacking an image with the owners of its files by a server that is not root. Its commands run as another user here; the kernel decides what that user may.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { FileOwners } from '../../../plugins/images/owners.ts'
import { writeLayout } from '../../helpers/oci.ts'
import { tar, type TarEntry } from '../../helpers/tar.ts'

// No entry of /etc/passwd has it, so it has no range of further users either.
const USER = 1899999996
const asUser = ['setpriv', '--reuid', String(USER), '--regid', String(USER), '--clear-groups', '--']
const mayNotTry = process.getuid?.() !== 0
  ? 'only root becomes another user'
  : spawnSync(asUser[0] ?? '', [...asUser.slice(1), 'unshare', '--user', '--map-root-user', 'true']).status === 0 ? false : 'users of this host may make no user namespaces'
/** The first of its further users. */
const FIRST = 1700000000
const mayNotMap = !['/usr/bin/newuidmap', '/usr/local/bin/newuidmap'].some((file) => existsSync(file))
  ? 'newuidmap is not installed: the package uidmap'
  : !['/etc/subuid', '/etc/subgid'].every((file) => existsSync(file))
      ? 'this host has no /etc/subuid and /etc/subgid'
      : spawnSync('unshare', ['--mount', 'true']).status === 0 ? false : 'this process may make no mount namespace'

/** Commands that start with these words. */
function behind (words: readonly string[]): HostCommands {
  const [file = '', ...before] = words
  const commands = createHostCommands()
  return { run: async (program, args, options) => await commands.run(file, [...before, program, ...args], options) }
}

/** A folder of that user's with an image of these files. */
async function image (t: Test, files: readonly TarEntry[]): Promise<{ folder: string, layout: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-owners-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  await chmod(folder, 0o755)
  const [work, layout] = [join(folder, 'work'), join(folder, 'layout')]
  await writeLayout(layout, [{ layers: [tar(files)] }])
  await mkdir(work)
  await chown(work, USER, USER)
  return { folder: work, layout }
}

t.test('without root, an image whose files all belong to root is unpacked, packed and removed again', { skip: mayNotTry }, async (t) => {
  const { folder, layout } = await image(t, [{ path: 'bin', type: 'dir' }, { path: 'bin/su', content: 'x', mode: 0o4755 }, { path: 'closed', type: 'dir', mode: 0 }, { path: 'closed/file', content: 'y', mode: 0 }])
  const owners = new FileOwners(behind(asUser), false)
  t.equal(await owners.open(), undefined)
  t.equal(owners.mapsAll, false)
  const [files, packed] = [join(folder, 'files'), join(folder, 'image')]
  await owners.run('umoci', ['raw', 'unpack', '--image', `${layout}:image`, files])
  await owners.run('mkfs.erofs', ['--quiet', packed, files])
  const { stdout } = await createHostCommands().run('dump.erofs', ['--path=/closed/file', packed])
  t.match(stdout, /Uid: 0\s+Gid: 0\s/)
  await owners.run('rm', ['-rf', '--', files])
})

t.test('an image with files of others is refused with what to ask for', { skip: mayNotTry }, async (t) => {
  const { folder, layout } = await image(t, [{ path: 'www', type: 'dir', uid: 33, gid: 33 }])
  const owners = new FileOwners(behind(asUser), false)
  await owners.open()
  await t.rejects(owners.run('umoci', ['raw', 'unpack', '--image', `${layout}:image`, join(folder, 'files')]), { name: 'PullFailure', message: /other users than root; .*package uidmap.*\/etc\/subuid/ })
})

t.test('with a range in /etc/subuid and /etc/subgid, an image with files of others is unpacked with their owners', { skip: mayNotTry || mayNotMap }, async (t) => {
  const { folder, layout } = await image(t, [{ path: 'www', type: 'dir', uid: 33, gid: 33 }])
  const [users, range] = [join(folder, '../passwd'), join(folder, '../range')]
  await writeFile(users, `root:x:0:0::/:/bin/sh\nsomebody:x:${USER}:${USER}::/:/bin/sh\n`)
  await writeFile(range, `somebody:${FIRST}:65536\n`)
  // Its own files in the place of the host's, in a mount namespace that ends with the command.
  const place = `mount --bind '${users}' /etc/passwd && mount --bind '${range}' /etc/subuid && mount --bind '${range}' /etc/subgid && exec "$@"`
  const owners = new FileOwners(behind(['unshare', '--mount', 'sh', '-c', place, 'sh', ...asUser]), false)
  t.equal(await owners.open(), undefined)
  t.equal(owners.mapsAll, true)
  await owners.run('umoci', ['raw', 'unpack', '--image', `${layout}:image`, join(folder, 'files')])
  // The first of the range is user 1 inside.
  t.equal((await stat(join(folder, 'files/www'))).uid, FIRST + 32)
  await owners.run('rm', ['-rf', '--', join(folder, 'files')])
})

t.test('where no user namespace can be made, that is the reason', { skip: mayNotTry }, async (t) => {
  const none = ['unshare', '--user', '--map-root-user', 'sh', '-c', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh']
  t.match(await new FileOwners(behind(none), false).open(), /needs root, or user namespaces \(unshare: .*\)$/)
})

t.test('a command that is missing is named, not the one that was to start it', { skip: mayNotTry }, async (t) => {
  const owners = new FileOwners(behind(asUser), false)
  await owners.open()
  await t.rejects(owners.run('umocl', []), { code: 'host_command_missing', message: 'the host has no command umocl' })
})
