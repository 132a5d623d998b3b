// Images whose program is an init: Debian's systemd and that of System V, and busybox', each as process 1 of real machines.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import t, { type Test } from 'tap'
import { DELETED } from '../../setup/structure/deleted.ts'
import { copyOut } from '../helpers/copy-out.ts'
import { shell } from '../helpers/counter.ts'
import { debianSystem, noDebianSystem } from '../helpers/debian-system.ts'
import { eventually } from '../helpers/eventually.ts'
import { startCommand } from '../helpers/exec.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, imageReady, push } from '../helpers/images.ts'
import { createMachine, follow, lines, waitFor } from '../helpers/machine.ts'
import { pushLayout, writeLayout } from '../helpers/oci.ts'
import { shareOfCommit } from '../../setup/test/share-of-commit.ts'
import { startTestServer } from '../helpers/server.ts'
import { tar } from '../helpers/tar.ts'

const TEST_MS = 1_500_000
/** kmod as on every machine of Debian's: the guest has modules, and a unit of systemd's wants it then. */
const PACKAGES = ['systemd-sysv', 'dbus', 'udev', 'kmod']
/** It counts, tells the journal, and leaves a word on the disk when it is stopped in order. */
const COUNTER = [
  '[Unit]', 'Description=A counter', '[Service]', 'ProtectSystem=full', 'PrivateTmp=yes',
  'ExecStart=/bin/sh -c \'n=0; while :; do n=$((n+1)); echo "count $n"; echo $n > /run/counter; sleep 0.5; done\'',
  'ExecStop=/bin/sh -c "echo stopped >> /root/stops"', ''
].join('\n')
const OWN = tar([{ path: 'etc/systemd/system/counter.service', content: COUNTER }])
const INITTAB = ['::sysinit:/bin/echo sysinit ran', '::respawn:/etc/counter', '::shutdown:/etc/farewell', ''].join('\n')
const BUSYBOX = [
  { path: 'sbin/init', type: 'symlink', target: '/bin/busybox' },
  { path: 'etc/inittab', content: INITTAB },
  { path: 'etc/counter', content: '#!/bin/sh\nn=0; while :; do n=$((n+1)); echo $n > /dev/shm/counter; sleep 0.5; done\n', mode: 0o755 },
  { path: 'etc/farewell', content: '#!/bin/sh\necho farewell; echo farewell >> /root/stops\n', mode: 0o755 }
] as const

t.setTimeout(2 * TEST_MS)
// Under emulation, on a busy machine, systemd may need longer for its end than the five seconds that a program is given.
const server = await startTestServer(t, { plugins: { instances: { config: { stopGrace: '2m' } } } })
const config = { baseURL: server.url, apiKey: server.key }

// A commit tries systemd, or the two small ones: each boots several times, and has its Debian set up before.
const inits: ReadonlyArray<() => Promise<unknown>> = [
  async () => await t.test('systemd of Debian', { timeout: TEST_MS, skip: noDebianSystem() }, systemd),
  async () => {
    await t.test('the init of System V', { timeout: TEST_MS, skip: noDebianSystem() }, systemV)
    await t.test('the init of busybox', { timeout: TEST_MS }, busybox)
  }
]
for (const run of shareOfCommit(inits, 2)) await run()

/** Nothing is masked and nothing is left out of what debootstrap sets up. */
async function debianImage (name: string, packages: readonly string[], own: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const reference = `${new URL(server.url).host}/init/${name}:latest`
    const layers = [await readFile(await debianSystem(packages)), own]
    await pushLayout(await writeLayout(folder, [{ layers, packing: 'none', config: { Cmd: ['/sbin/init'] } }]), reference, { username: 'key', password: server.key })
    return await imageReady(server, reference)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function isRunning (id: string): Promise<string> {
  return await shell(server, id, 'while [ ! -S /run/systemd/private ]; do sleep 0.1; done; systemctl is-system-running --wait; systemctl --failed --plain --no-legend --no-pager')
}

async function count (id: string, file: string): Promise<number> {
  return Number(await shell(server, id, `cat ${file}`))
}

/** Waits until the counter has passed a number: who has just gone on may be asked before it has had a turn. */
async function countsOn (id: string, file: string, above: number): Promise<boolean> {
  return await shell(server, id, `i=0; while [ $i -lt 300 ] && [ "$(cat ${file})" -le ${above} ]; do i=$((i+1)); sleep 0.1; done; cat ${file}`).then((seen) => Number(seen) > above)
}

async function systemd (t: Test): Promise<void> {
  const { id } = await createMachine(server, await debianImage('systemd', PACKAGES, OWN), { name: 'debian', size: '512MB', overlay_size: '1GB' })
  await waitFor(server, id, 'Running')
  const boot = await follow(server, id, (line) => line.includes('Reached target') && line.includes('multi-user.target'))
  t.match(boot.join('\n'), /systemd 252.* running in system mode.*Welcome to Debian GNU\/Linux.*\[ {2}OK {2}\] Reached target.*sysinit\.target/s, 'the boot is in the log')
  t.notOk(boot.some((line) => line.includes('\r') || line.includes('\x1b')), 'as plain lines')
  t.equal(await isRunning(id), 'running\n', 'it comes up to running, and no unit has failed')
  await whatItIs(t, id)
  await unit(t, id)
  await terminal(t, id)
  await files(t, id)
  if (!DELETED.includes('volumes')) await volume(t, id)
  await rests(t, id)
  await forks(t, id)
  await ends(t, id)
  await server.sdk.instances.delete(id)
}

async function whatItIs (t: Test, id: string): Promise<void> {
  t.equal(await shell(server, id, 'cat /proc/1/comm; readlink -f /proc/1/exe; systemd-detect-virt --container; cat /run/systemd/container; cat /proc/1/cgroup'),
    'systemd\n/usr/lib/systemd/systemd\ncontainer-other\nberth\n0::/init.scope\n', 'process 1 is systemd')
  t.equal(await shell(server, id, 'cat /proc/[0-9]*/comm | grep -c berth; true'), '0\n', 'and it sees nothing of the agent')
  t.equal(await shell(server, id, 'cat /sys/fs/cgroup/cgroup.controllers; hostnamectl hostname; cat /etc/machine-id | wc -c'), 'cpuset cpu io memory pids\ndebian\n33\n', 'all control groups are its to divide')
  t.equal(await shell(server, id, 'kill -9 1; kill -HUP 1; cat /proc/1/comm'), 'systemd\n', 'and nobody in it can kill it')
}

async function unit (t: Test, id: string): Promise<void> {
  await shell(server, id, 'systemctl start counter')
  let said = ''
  await eventually('its unit is active', async () => (said = await shell(server, id, 'systemctl is-active counter; true')) === 'active\n', { explain: () => JSON.stringify(said) })
  t.ok(await countsOn(id, '/run/counter', 2))
  t.match(await shell(server, id, 'journalctl --no-pager -u counter'), /systemd\[1\]: Started counter\.service - A counter.*sh\[\d+\]: count 1\n/s, 'the journal has what it says')
  t.match(await shell(server, id, 'systemctl show counter -p ControlGroup -p MemoryCurrent -p TasksCurrent; cat /sys/fs/cgroup/system.slice/counter.service/cgroup.procs | wc -l'),
    /^MemoryCurrent=\d+\nTasksCurrent=[12]\nControlGroup=\/system\.slice\/counter\.service\n[12]\n$|ControlGroup=\/system\.slice\/counter\.service/, 'it has a control group of its own')
  t.equal(await shell(server, id, 'systemd-run --quiet --wait --pipe -p MemoryMax=32M -p TasksMax=5 sh -c "cat /sys/fs/cgroup\\$(cut -d: -f3 /proc/self/cgroup)/memory.max /sys/fs/cgroup\\$(cut -d: -f3 /proc/self/cgroup)/pids.max"'), '33554432\n5\n', 'and limits work')
}

async function terminal (t: Test, id: string): Promise<void> {
  const command = await startCommand(server, id, { command: ['/bin/bash'], tty: true, rows: 30, cols: 100 })
  let text = ''
  command.onOutput((_stream, data) => { text += data.toString() })
  command.write('tty; stty size; systemctl is-active counter; exit 3\n')
  t.match(await command.result, { exitCode: 3 })
  t.match(text, /\/dev\/pts\/\d+\r\n30 100\r\nactive\r\n/, 'a terminal beside it')
}

/** What systemd has mounted is there for copies, too. */
async function files (t: Test, id: string): Promise<void> {
  const here = testFolder(t, { in: 'copied\n' })
  await cpToInstance(config, { instanceId: id, srcPath: join(here, 'in'), dstPath: '/run/copied' })
  t.equal(await shell(server, id, 'stat -f -c %T /run; cat /run/copied'), 'tmpfs\ncopied\n')
  await shell(server, id, 'echo back > /run/copied')
  await copyOut(config, id, '/run/copied', join(here, 'out'))
  t.equal(await readFile(join(here, 'out'), 'utf8'), 'back\n')
}

async function volume (t: Test, id: string): Promise<void> {
  const { id: volume } = await server.sdk.volumes.create({ name: 'init', size_gb: 1 })
  await server.sdk.instances.volumes.attach(volume, { id, mount_path: '/srv/data' })
  await shell(server, id, 'echo kept > /srv/data/file')
  const sees = 'nsenter -t $(systemctl show -P MainPID counter) -m cat /srv/data/file'
  t.equal(await shell(server, id, `findmnt -no FSTYPE /srv/data; systemctl is-active srv-data.mount; ${sees}`), 'ext4\nactive\nkept\n', 'a volume that comes later is a mount of systemd, and is there for services with mounts of their own')
  await server.sdk.instances.volumes.detach(volume, { id })
  t.equal(await shell(server, id, `systemctl is-active srv-data.mount; ${sees} 2>&1 | grep -c "No such file"`), 'inactive\n1\n', 'and it goes again')
  await server.sdk.volumes.delete(volume)
}

async function rests (t: Test, id: string): Promise<void> {
  const pid = await shell(server, id, 'systemctl show -P MainPID counter')
  const before = await count(id, '/run/counter')
  t.match(await server.sdk.instances.standby(id), { state: 'Standby' })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  t.ok(await countsOn(id, '/run/counter', before), 'after a standby its services go on')
  t.equal(await shell(server, id, 'systemctl show -P MainPID counter'), pid, 'and are the same')
  t.equal(await isRunning(id), 'running\n', 'systemd too')
}

async function forks (t: Test, id: string): Promise<void> {
  const before = await count(id, '/run/counter')
  const bootId = await shell(server, id, 'cat /proc/sys/kernel/random/boot_id')
  const fork = await server.sdk.instances.fork(id, { name: 'debian-fork', from_running: true })
  t.match(fork, { state: 'Running' })
  for (const each of [id, fork.id]) t.ok(await countsOn(each, '/run/counter', before), 'both go on')
  t.equal(await isRunning(fork.id), 'running\n')
  t.equal(await shell(server, fork.id, 'hostname'), 'debian-fork\n')
  t.not(await shell(server, fork.id, 'cat /proc/sys/kernel/random/boot_id'), bootId, 'the fork is a machine of its own')
  t.equal(await shell(server, id, 'cat /proc/sys/kernel/random/boot_id'), bootId)
  await shell(server, fork.id, 'systemctl restart counter')
  await server.sdk.instances.delete(fork.id)
}

async function ends (t: Test, id: string): Promise<void> {
  const printed = (await lines(server, id)).length
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.instances.get(id), { state: 'Stopped', exit_code: 0 })
  t.match((await lines(server, id)).slice(printed).join('\n'), /Stopped counter\.service.*Reached target shutdown\.target.*Sending SIGTERM to remaining processes.*Halting system/s, 'a stop is systemd\'s own shutdown')
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  t.equal(await isRunning(id), 'running\n', 'it starts again')
  t.equal(await shell(server, id, 'cat /root/stops; journalctl --quiet --list-boots --no-pager | wc -l'), 'stopped\n2\n', 'and what its services did at the stop is on its disk, as is the journal')
  for (const [command, word] of [['systemctl poweroff', 'Powering off'], ['reboot', 'Rebooting'], ['systemctl exit 7', 'Exit']] as const) {
    // The command may be ended with its machine.
    await shell(server, id, `${command} || true`).catch(() => '')
    t.match(await waitFor(server, id, 'Stopped'), { exit_code: word === 'Exit' ? 7 : 0 }, command)
    t.match((await lines(server, id)).slice(-6).join('\n'), new RegExp(word))
    await server.sdk.instances.start(id, {})
    await waitFor(server, id, 'Running')
    t.equal(await isRunning(id), 'running\n')
  }
}

/** With Debian's own inittab and scripts. */
async function systemV (t: Test): Promise<void> {
  const own = tar([{ path: 'etc/rc.local', content: '#!/bin/sh\necho mine has run\n', mode: 0o755 }])
  const { id } = await createMachine(server, await debianImage('sysv', ['sysvinit-core', 'initscripts'], own), { name: 'sysv', size: '256MB', overlay_size: '512MB' })
  await waitFor(server, id, 'Running')
  await follow(server, id, (line) => line.includes('mine has run'))
  t.match(await shell(server, id, 'readlink -f /proc/1/exe; runlevel; kill -9 1; cat /proc/1/comm'), /^\/usr\/sbin\/init\nN 2\ninit\n$/, 'it comes up to its runlevel')
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.instances.get(id), { state: 'Stopped', exit_code: 0 })
  t.match((await lines(server, id)).join('\n'), /Switching to runlevel: 6.*Will now restart/s, 'a stop is its own shutdown')
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  await shell(server, id, 'while [ "$(runlevel)" != "N 2" ]; do sleep 0.2; done; poweroff').catch(() => '')
  t.match(await waitFor(server, id, 'Stopped'), { exit_code: 0 }, 'and so is a poweroff inside')
  t.match((await lines(server, id)).join('\n'), /Switching to runlevel: 0.*Will now halt|Switching to runlevel: 0.*[Pp]ower/s)
  await server.sdk.instances.delete(id)
}

async function busybox (t: Test): Promise<void> {
  const image = await push(server, await busyboxImage({ Cmd: ['/sbin/init'] }, [...BUSYBOX]), 'init/busybox:latest')
  const { id } = await createMachine(server, image, { name: 'busybox' })
  await waitFor(server, id, 'Running')
  await follow(server, id, (line) => line === 'sysinit ran')
  const counter = '/dev/shm/counter'
  t.equal(await shell(server, id, `while [ ! -s ${counter} ]; do sleep 0.1; done; readlink /proc/1/exe; kill -9 1; kill -9 -1; readlink /proc/1/exe`), '/bin/busybox\n/bin/busybox\n', 'process 1 is busybox, and cannot be killed')
  await shell(server, id, `echo 100 > ${counter}; pid=$(pgrep -f /etc/counter); kill -9 $pid; while [ "$(cat ${counter})" -ge 100 ]; do sleep 0.1; done`)
  t.pass('it starts again what has ended')
  const before = await count(id, counter)
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  t.ok(await countsOn(id, counter, before), 'after a standby it goes on')
  const fork = await server.sdk.instances.fork(id, { name: 'busybox-fork', from_running: true })
  t.ok(await countsOn(fork.id, counter, before), 'and in a fork')
  await server.sdk.instances.delete(fork.id)
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.instances.get(id), { state: 'Stopped', exit_code: 0 })
  t.match((await lines(server, id)).join('\n'), /farewell.*Requesting system poweroff/s, 'a stop is its own shutdown')
  for (const command of ['poweroff', 'halt', 'reboot']) {
    await server.sdk.instances.start(id, {})
    await waitFor(server, id, 'Running')
    await shell(server, id, command).catch(() => '')
    t.match(await waitFor(server, id, 'Stopped'), { exit_code: 0 }, command)
  }
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  t.equal(await shell(server, id, 'cat /root/stops'), 'farewell\n'.repeat(4), 'each of them was in order')
  await server.sdk.instances.delete(id)
  const again = (await createMachine(server, image, { name: 'again', restart_policy: { policy: 'always', backoff: '1s' } })).id
  const boots = async (): Promise<number> => (await lines(server, again)).filter((line) => line === 'sysinit ran').length
  await eventually('it has booted', async () => await boots() === 1)
  await shell(server, again, 'reboot').catch(() => '')
  await eventually('it has booted again', async () => await boots() === 2)
  t.match(await waitFor(server, again, 'Running'), { restart_status: { attempts: 1 } }, 'a reboot is one for an instance that is always started again')
  await server.sdk.instances.delete(again)
}
