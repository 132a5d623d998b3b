// Firecracker in a jail: when the jailer is used, what a jailed program has of the host, and how it is reached, found and ended from outside. KVM is not needed for that.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asValue, createContainer } from 'awilix'
import t, { type Test } from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { bringUp } from '../../../core/library/vmm/rest-launch.ts'
import type { RestVm } from '../../../core/library/vmm/rest-vm.ts'
import { runFolder } from '../../../core/library/vmm/run-folder.ts'
import { cradleFor } from '../../../core/plugins/registrar.ts'
import { argumentsOf, folderOf as folderOfProcess, uidOf } from '../../../core/process/find.ts'
import { mountsOf } from '../../../core/process/mounts.ts'
import { createFirecrackerDriver } from '../../../plugins/hypervisor-firecracker/driver.ts'
import { plugin } from '../../../plugins/hypervisor-firecracker/index.ts'
import { createJailerSearch, findJailer, ROOT, showInJail, startJailed, takeUserfaultfd, type Jailer } from '../../../plugins/hypervisor-firecracker/jail.ts'
import { manifest } from '../../../plugins/hypervisor-firecracker/manifest.ts'
import { API_SOCKET, DRIVER, VSOCK_SOCKET } from '../../../plugins/hypervisor-firecracker/names.ts'
import { clientOf, createVm, folderOf } from '../../../plugins/hypervisor-firecracker/vm.ts'
import { mountsIn, processesIn } from '../../../setup/server/leftovers.ts'
import { contents } from '../../contracts/hypervisor/fixture.ts'
import { eventually } from '../../helpers/eventually.ts'
import { commands } from '../hypervisor-qemu/machine.ts'
import { binary, config, makeDriver, missing } from './machine.ts'

t.setTimeout(180_000)
const USER = { uid: 61_011, gid: 61_012 }
const VMM_OPTIONS = { commands, imageTimeoutMs: 10_000, heartbeat: { intervalMs: 500, deadlineMs: 5000 }, guestTimeoutMs: 1000, onError: (error: unknown) => { throw error } }

async function folderFor (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth jail, '))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const skip = process.getuid?.() === 0 ? false : 'only root can make a jail'

await t.test('files are shown in a jail alone, one is changed for another while the program runs, and nothing is left', { skip }, async (t) => {
  const directory = await folderFor(t)
  const file = (name: string): string => join(directory, name)
  for (const name of ['one', 'two', 'three', 'memory']) await writeFile(file(name), name)
  const run = runFolder(directory, DRIVER, 'sleep', { jail: { root: ROOT, isUsed: true } })
  await run.make(USER)
  await run.link('disk', file('one'))
  await run.link('memory', file('memory'))
  await copyFile('/bin/busybox', join(run.room, 'busybox'))
  // In place of the jailer, which makes such a root, and closes what it inherits: the lock is its input by then.
  const jailer = 'exec 3<&-; cd "$0"; mkdir old; pivot_root . old; exec /busybox sh -c "/busybox umount -l /old; exec /busybox sleep 600"'
  const { command: [program] } = startJailed({ path: '', binary: '' }, USER, {}, [])
  const child = spawn('flock', ['--shared', '--nonblock', '--no-fork', file('memory'), program, 'start', ROOT, 'disk', 'memory', '--', '/bin/sh', '-c', jailer, ROOT], { cwd: run.path, stdio: ['ignore', 'inherit', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const pid = child.pid ?? 0
  const ended = once(child, 'exit')
  await eventually('it runs', async () => (await argumentsOf(pid))[1] === 'sleep')
  const inside = async (name: string): Promise<string> => await readFile(`/proc/${pid}/root/${name}`, 'utf8')
  t.equal(await inside('disk'), 'one')
  t.equal(await inside('memory'), 'memory')
  t.same(await mountsIn(directory), [], 'the host has no mount of it')
  t.equal(await folderOfProcess(pid), run.room, 'it is found by its folder')
  const tryLock = async (): Promise<unknown> => await commands.run('flock', ['--exclusive', '--nonblock', file('memory'), 'true'])
  await t.rejects(tryLock(), 'it holds the lock that it was started with')

  for (const name of ['two', 'three']) {
    await run.link('disk', file(name))
    await showInJail(commands, run, pid, 'disk')
    t.equal(await inside('disk'), name)
  }
  t.equal((await mountsOf(pid)).filter(({ point }) => point.endsWith('/disk')).length, 1, 'the others are let go of')
  await run.link('disk', file('none'))
  await t.rejects(showInJail(commands, run, pid, 'disk'), /No such file/)
  t.equal(await inside('disk'), 'three', 'a file that is not there changes nothing')
  await rm(join(run.room, 'memory'))
  await symlink(file('one'), join(run.room, 'memory'))
  await showInJail(commands, run, pid, 'memory')
  t.equal(await inside('memory'), 'memory', 'a link of the jailed program\'s is not followed')
  t.same((await mountsOf(pid)).map(({ point }) => point).sort(), ['/', '/disk', '/memory'])

  await run.reclaim()
  await ended
  await t.resolves(tryLock())
  t.same(await contents(directory), ['memory', 'one', 'three', 'two'])
})

await t.test('a jailer is found beside Firecracker or as it is named, is tried once, and why there is none is said', { skip }, async (t) => {
  const folder = await folderFor(t)
  const script = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    return join(folder, name)
  }
  // It starts the program outside of any jail, as it stands, with the arguments after the second --.
  const jailer = (version: string): string => `[ "$1" = --version ] && exec echo "Jailer v${version}"
echo tried >> "${folder}/tries"
while [ "$1" != -- ]; do [ "$1" = --exec-file ] && program=$2; shift; done
shift; exec "$program" "$@"`
  const firecracker = await script('firecracker-v1.16.1', 'echo "Firecracker v1.16.1"')
  await symlink(firecracker, join(folder, 'firecracker'))
  const find = async (name: string): Promise<Jailer | string> => await findJailer({ jailer: name, binary: join(folder, 'firecracker') }, { commands, folder: join(folder, 'own') })
  t.equal(await find('berth-test-jailer'), 'the host has no command berth-test-jailer')
  const path = await script('berth-test-jailer', jailer('1.16.1'))
  for (const name of ['berth-test-jailer', path]) t.same(await find(name), { path, binary: firecracker })
  t.equal(await readFile(join(folder, 'tries'), 'utf8'), 'tried\n', 'what was found is remembered')
  t.match(await find(await script('old', jailer('1.15.0'))), /old cannot be used: its version is 1\.15\.0, and Firecracker's is 1\.16\.1/)
  t.match(await find(await script('refused', 'echo "Failed to create /dev/kvm via mknod: Operation not permitted" >&2; exit 1')), /refused cannot be used: .*mknod: Operation not permitted/s)
  t.equal(await find('off'), 'it is off by its setting')
  t.same(await readdir(join(folder, 'own')), ['jailer.json'], 'a try leaves nothing')

  const begin = async (name: string): Promise<string> => {
    const said: string[] = []
    const log = { info: (_: unknown, text: string) => said.push(text), warn: (text: string) => said.push(text), error: (_: unknown, text: string) => said.push(text) }
    const container = createContainer({ injectionMode: 'PROXY', strict: true })
    container.register({ log: asValue(log), commands: asValue(commands), server: asValue({ dataDir: folder }), guest: asValue({}) })
    const created = await plugin.create?.(cradleFor(container, manifest, () => true), { ...config, binary: join(folder, 'firecracker'), jailer: name })
    await created?.start?.(new AbortController().signal)
    return said.join()
  }
  t.equal(await begin('berth-test-jailer'), 'each Firecracker is started by its jailer')
  for (const name of ['berth-test-none', 'old', 'off']) t.equal(await begin(name), 'Firecracker is started without its jailer', name)
  await t.rejects(begin(join(folder, 'old')), { name: 'SkipPlugin', message: /^plugins\.hypervisor-firecracker\.config\.jailer: .*its version is 1\.15\.0/ }, 'a file that is named is wanted')
})

await t.test('a Firecracker of which the start said that it is jailed is not started when the jailer is gone', { skip }, async (t) => {
  const folder = await folderFor(t)
  const file = (name: string): string => join(folder, name)
  const script = async (name: string, text: string): Promise<void> => { await writeFile(file(name), `#!/bin/sh\n${text}\n`, { mode: 0o755 }) }
  await mkdir(file('free'))
  await chmod(file('free'), 0o777)
  await script('firecracker', `case "$1" in --version) echo "Firecracker v1.16.1";; --no-api) echo "Kernel panic";; *) echo "$@" > "${file('free/started')}";; esac`)
  await script('jailer', '[ "$1" = --version ] && exec echo "Jailer v1.16.1"\nwhile [ "$1" != -- ]; do [ "$1" = --exec-file ] && program=$2; shift; done\nshift; exec "$program" "$@"')
  // In the place of /dev/kvm.
  await writeFile(file('kvm'), '')
  await chmod(file('kvm'), 0o666)
  const settings = { ...config, binary: file('firecracker'), jailer: 'jailer', launchTimeout: '5s' }
  const deps = { commands, folder: file('own'), kvm: file('kvm'), guest: { system: async () => await Promise.resolve({ kernel: file('kvm'), version: '1' }) }, onError: (error: unknown) => { throw error } }
  const search = createJailerSearch(settings, deps)
  t.same(await search(), { path: file('jailer'), binary: file('firecracker') }, 'what the start says')
  await rm(file('jailer'))
  await mkdir(file('vm'))
  const { memory: _, ...spec } = await specIn(file('vm'))
  await t.rejects(createFirecrackerDriver(settings, deps, search).launch({ ...spec, kernel: { path: file('kvm'), initrd: file('kvm'), arguments: [] } }), { code: 'vm_launch_failed', message: /jailer/ })
  t.same(await readdir(file('free')), [])
})

const own = await mkdtemp(join(tmpdir(), 'berth-jailer-'))
t.teardown(() => rm(own, { recursive: true }))
const real = await missing() ?? await findJailer(config, { commands, folder: own })
const without = typeof real === 'string' ? real : false

await t.test('the jailer becomes a Firecracker that is reached, found and ended from outside', { skip: without }, async (t) => {
  const directory = await folderFor(t)
  const spec = await specIn(directory)
  const before = await contents(directory)
  const vm = await start(spec, real)
  t.teardown(() => vm.kill())
  const { pid } = vm.handle
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  for (const line of [/^Name:\s+firecracker$/m, /^Uid:(\s+61011){4}$/m, /^Gid:(\s+61012){4}$/m, /^Groups:\s*$/m, /^NoNewPrivs:\s+1$/m]) t.match(status, line)
  for (const set of ['Inh', 'Prm', 'Eff', 'Amb']) t.match(status, new RegExp(`^Cap${set}:\\s+0+$`, 'm'))
  t.match(await readFile(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 +0 [^]*^Max open files +2048 +2048 /m)
  t.equal((await stat(`/proc/${pid}/root`)).ino, (await stat(folderOf(directory).room)).ino, 'its root is the jail')
  t.same((await readdir(`/proc/${pid}/root`)).sort(), ['api.sock', 'dev', 'disk-root', 'firecracker', 'firecracker.pid', 'memory', 'run', 'vsock.sock_1025', 'vsock.sock_1026'])
  t.same((await readdir(`/proc/${pid}/root/dev`, { recursive: true })).sort(), ['kvm', 'net', 'net/tun', 'urandom'])
  t.same((await mountsOf(pid)).map(({ point }) => point).sort(), ['/', '/disk-root', '/memory'], 'and it has no other mount of the host\'s')
  t.same(await mountsIn(directory), [])
  t.equal(await readFile(`/proc/${pid}/root/disk-root`, 'utf8'), 'root')
  const processes = (await processesIn(directory)).map((found) => found.pid)
  t.ok(processes.includes(pid), 'it is found by its folder')
  t.equal(processes.length, 2)
  for (const each of processes) t.equal(await uidOf(each), USER.uid, 'what writes its output is no longer root, either')
  await t.rejects(commands.run('flock', ['--exclusive', '--nonblock', join(directory, 'memory'), 'true']), 'it holds its memory file')

  vm.release()
  const driver = await makeDriver()
  const found = await driver.attach(vm.handle)
  t.same(found.state, { status: 'paused' }, 'its API answers the next server')
  await found.rotate('vmm', join(directory, 'vmm.log.new'))
  await rm(join(directory, 'vmm.log.new'))
  await found.kill()
  t.same(await processesIn(directory), [])
  t.same(await contents(directory), before)
  t.same((await driver.attach(vm.handle)).state, { status: 'gone' })
})

await t.test('a start that fails in the jail says why and leaves nothing, and what a killed server left is ended by the next start', { skip: without }, async (t) => {
  const directory = await folderFor(t)
  const spec = await specIn(directory)
  const before = await contents(directory)
  await t.rejects(start({ ...spec, disks: [{ id: 'root', path: join(directory, 'none'), readonly: true }] }, real), { code: 'vm_launch_failed', message: /disk-root: No such file/ })
  await t.rejects(start(spec, typeof real === 'string' ? real : { ...real, binary: join(directory, 'none') }), { code: 'vm_launch_failed', message: /none/ })
  t.same(await contents(directory), before)
  const first = await start(spec, real)
  first.release()
  const second = await start(spec, real)
  t.teardown(() => second.kill())
  t.equal((await processesIn(directory)).filter(({ pid }) => pid === first.handle.pid).length, 0)
  t.same((await (await makeDriver()).attach(first.handle)).state, { status: 'gone' })
  t.equal((await processesIn(directory)).length, 2, 'the new one is left alone')
  await second.kill()
  t.same(await contents(directory), before)
})

await t.test('where VMs lie on a file system without programs and device nodes, a jail has both', { skip: without }, async (t) => {
  const directory = join(await folderFor(t), 'mounted')
  await mkdir(directory)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'nodev,noexec,mode=711', 'berth-test', directory])
  t.teardown(() => commands.run('umount', [directory]))
  const vm = await start(await specIn(directory), real)
  t.teardown(() => vm.kill())
  t.match(await readFile(`/proc/${vm.handle.pid}/mountinfo`, 'utf8'), /firecracker\/jail\/vm\/root \/ rw,nosuid,relatime /)
  const kvm = await stat(`/proc/${vm.handle.pid}/root/dev/kvm`)
  t.match(kvm, { uid: USER.uid, gid: USER.gid, rdev: 10 * 256 + 232 })
  t.ok(kvm.isCharacterDevice())
  await vm.kill()
  t.same(await processesIn(directory), [])
})

async function specIn (directory: string): Promise<VmSpec> {
  const file = (name: string): string => join(directory, name)
  const files = { vmm: file('vmm.log'), output: file('output.log'), report: file('report') }
  for (const path of [...Object.values(files), file('memory')]) {
    await writeFile(path, '', { mode: 0o600 })
    await chown(path, USER.uid, USER.gid)
  }
  await writeFile(file('root'), 'root')
  return { id: 'jailed', directory, files, vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: '', initrd: '', arguments: [] }, disks: [{ id: 'root', path: file('root'), readonly: true }], identity: USER, memory: { path: file('memory'), sharing: 'private' } }
}

/** Starts Firecracker as the driver does, and asks nothing of it. */
async function start (spec: VmSpec, jailer: Jailer | string): Promise<RestVm> {
  if (typeof jailer === 'string') throw new Error(jailer)
  const folder = folderOf(spec.directory, { isJailed: true })
  const files = { memory: spec.memory?.path ?? '', ...Object.fromEntries(spec.disks.map(({ id, path }) => [`disk-${id}`, path])) }
  return await bringUp(spec, {
    ...startJailed(jailer, USER, files, ['--api-sock', API_SOCKET, '--enable-pci', '--level', 'Warn']),
    name: binary, driver: DRIVER, vmmVersion: '1.16.1', folder, client: clientOf(folder, 10_000), vsock: VSOCK_SOCKET, ping: '/version', timeoutMs: 10_000,
    facts: { key: '', shape: {}, vcpus: 1, memoryBytes: 2 ** 27 }, fill: () => takeUserfaultfd(folder), makeVm: (handle) => createVm(handle, { status: 'paused' }, VMM_OPTIONS), onError: (error) => { throw error }
  }, undefined)
}
