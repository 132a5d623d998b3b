// What only QEMU does: leftovers of crashed launches, pauses, full disks, its console, its sandbox, captures that fail.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { isAlive } from '../../../core/process/identity.ts'
import { connectUnix } from '../../../core/process/unix-socket.ts'
import { diskNode } from '../../../plugins/hypervisor-qemu/args.ts'
import { openQmp } from '../../../plugins/hypervisor-qemu/client.ts'
import type { HypervisorFixture } from '../../contracts/hypervisor.ts'
import { contents, converse, launch, makeSpec, reaches, workload } from '../../contracts/hypervisor/fixture.ts'
import { facetOf, imagingOf } from '../../contracts/hypervisor/image-fixture.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { commands, guest, makeDriver, makeMachines } from './machine.ts'
import { eventually } from '../../helpers/eventually.ts'
import { withoutMounts } from '../../helpers/rights.ts'

t.setTimeout(1_400_000)
const machines = await makeMachines()
t.teardown(() => machines.remove())
const fixture: HypervisorFixture = { module: new URL('machine.js', import.meta.url), makeDriver, guest, makeMachine: machines.make }

await t.test('a VMM that nobody knows is ended by the next launch in its folder', async (t) => {
  const driver = await makeDriver()
  const spec = await makeSpec(t, fixture)
  const forgotten = await launch(t, driver, spec)
  forgotten.release()
  const vm = await launch(t, driver, spec)
  t.notOk(isAlive(forgotten.handle))
  t.equal(vm.state.status, 'running')
  await forgotten.kill()
  t.ok((await stat(join(spec.directory, 'qemu', 'qmp.sock'))).isSocket(), 'the old one\'s end takes nothing from the new one')
})

await t.test('a VM that was paused from outside is paused', async (t) => {
  const driver = await makeDriver()
  const first = await launch(t, driver, await makeSpec(t, fixture))
  first.release()
  const control = async (command: string): Promise<void> => {
    const qmp = await openQmp(await connectUnix(join(first.handle.directory, 'qemu'), 'qmp.sock'), 5000)
    await qmp.execute(command)
    qmp.close()
  }
  await control('stop')
  const paused = await driver.attach(first.handle)
  t.same(paused.state, { status: 'paused' })
  paused.release()
  await control('cont')
  const running = await driver.attach(first.handle)
  t.same(running.state, { status: 'running' })
  await running.kill()
})

await t.test('a replacement of a disk that a crash cut off is no hindrance, and the output can be rotated after it', async (t) => {
  const driver = await makeDriver()
  const spec = await makeSpec(t, fixture)
  const first = await launch(t, driver, spec)
  first.release()
  const qmp = await openQmp(await connectUnix(join(first.handle.directory, 'qemu'), 'qmp.sock'), 5000)
  const [stale, next] = [await machines.make(spec.directory), await machines.make(spec.directory)].map(({ disks }) => disks[1]?.path ?? '')
  await qmp.execute('blockdev-add', diskNode('other-overlay', { path: stale ?? '', readonly: false }))
  qmp.close()
  const vm = await driver.attach(first.handle)
  await vm.replaceDisk?.('overlay', next ?? '')
  await vm.replaceDisk?.('overlay', stale ?? '')
  const link = await converse(t, fixture, vm)
  const moved = `${spec.files.output}.moved`
  await vm.rotate('output', moved)
  await link.run(workload('print', 'moved'))
  await eventually('the program speaks', async () => (await readFile(moved, 'utf8')).includes('moved'))
  t.equal(await readFile(spec.files.output, 'utf8'), '', 'all of it in the new file')
  await vm.kill()
})

await t.test('an image that another VM writes is not given to a second one, which keeps its own', async (t) => {
  const driver = await makeDriver()
  const [one, other] = [await makeSpec(t, fixture), await makeSpec(t, fixture)]
  await launch(t, driver, one)
  const vm = await launch(t, driver, other)
  const link = await converse(t, fixture, vm)
  for (let turn = 0; turn < 2; turn++) await t.rejects(async () => await vm.replaceDisk?.('overlay', one.disks[1]?.path ?? ''), { code: 'qmp_refused', message: /lock/ })
  await link.run(workload('print', 'on its own'))
  await eventually('the program speaks', async () => (await readFile(other.files.output, 'utf8')).includes('on its own'))
})

await t.test('a handle of another driver or version is refused', async (t) => {
  const driver = await makeDriver()
  const vm = await launch(t, driver, await makeSpec(t, fixture))
  await t.rejects(driver.attach({ ...vm.handle, driver: 'firecracker' }), { code: 'vm_handle_unknown' })
  await t.rejects(driver.attach({ ...vm.handle, version: 3 }), { code: 'vm_handle_unknown' })
})

await t.test('QEMU runs in its sandbox, without privileges, and cannot dump its memory', async (t) => {
  const spec = await makeSpec(t, fixture, process.getuid?.() === 0 ? { identity: { uid: 61_001, gid: 61_001 } } : {})
  const vm = await launch(t, await makeDriver(), spec)
  const status = await readFile(`/proc/${vm.handle.pid}/status`, 'utf8')
  t.match(status, /^Seccomp:\s+2$/m)
  t.match(status, /^NoNewPrivs:\s+1$/m)
  if (spec.identity !== undefined) for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapBnd']) t.match(status, new RegExp(`^${set}:\\s+0+$`, 'm'))
  t.match(await readFile(`/proc/${vm.handle.pid}/limits`, 'utf8'), /^Max core file size\s+0\s+0/m)
})

await t.test('a VM\'s memory is mapped where huge pages fit', async (t) => {
  const spec = await makeSpec(t, fixture)
  for (const memory of [undefined, { path: join(spec.directory, 'memory'), sharing: 'shared' as const }]) {
    if (memory !== undefined) await writeFile(memory.path, '', { mode: 0o600 })
    const vm = await launch(t, await makeDriver(), { ...spec, ...memory === undefined ? {} : { memory } })
    const maps = (await readFile(`/proc/${vm.handle.pid}/maps`, 'utf8')).split('\n').map((line) => (/^([0-9a-f]+)-([0-9a-f]+) /.exec(line) ?? []).slice(1).map((address) => parseInt(address, 16)))
    const [start = NaN] = maps.find(([from = 0, to = 0]) => to - from === spec.memoryBytes) ?? []
    t.equal(start % 2 ** 21, 0, `${memory === undefined ? 'of its own' : 'in a file'}, at ${start.toString(16)}`)
    await vm.kill()
  }
})

await t.test('the guest\'s processor runs x86-64-v3 code, and its console follows a rotation', async (t) => {
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, await makeDriver(), spec)
  const link = await converse(t, fixture, vm)
  const path = `${spec.files.vmm}.new`
  await vm.rotate('vmm', path)
  await link.run(workload('flags'))
  await vm.wait()
  const flags = (await readFile(spec.files.output, 'utf8')).trim().split(/\s+/)
  // `abm` is what the kernel calls LZCNT.
  for (const flag of ['cx16', 'lahf_lm', 'popcnt', 'sse4_1', 'sse4_2', 'ssse3', 'avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'abm', 'movbe', 'xsave', 'rdrand']) {
    t.ok(flags.includes(flag), flag)
  }
  t.match(await readFile(path, 'utf8'), /to the console/)
  t.notMatch(await readFile(spec.files.vmm, 'utf8'), /to the console/)
})

await t.test('a full disk on the host is told, and the VM goes on once there is space', { skip: withoutMounts }, async (t) => {
  const spec = await makeSpec(t, fixture)
  const small = join(spec.directory, 'small')
  await mkdir(small)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', small])
  t.teardown(() => commands.run('umount', ['-l', small]))
  const { disks } = await machines.make(small)
  const vm = await launch(t, await makeDriver(), { ...spec, disks })
  const link = await converse(t, fixture, vm)
  await link.run(workload('fill'))
  await reaches(vm, 'hung')
  t.match(vm.state.reason, /no space left/)
  await commands.run('mount', ['-o', 'remount,size=64m', small])
  await reaches(vm, 'running')
  await eventually('the program goes on', async () => /^filled$/m.test(await readFile(spec.files.output, 'utf8')))
})

await t.test('a capture for which there is no space says so, leaves no files, and the VM runs on', { skip: withoutMounts }, async (t) => {
  const spec = await makeSpec(t, fixture)
  const small = join(spec.directory, 'small')
  await mkdir(small)
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', small])
  t.teardown(() => commands.run('umount', ['-l', small]))
  const vm = await launch(t, await makeDriver(), spec)
  const link = await converse(t, fixture, vm)
  await link.run(workload('count'))
  const failure: unknown = await facetOf(vm).capture({ statePath: join(small, 'state'), memoryPath: join(small, 'memory') }).catch((error: unknown) => error)
  t.ok(isDiskFull(failure), String(failure))
  t.same(await readdir(small), [])
  t.same(vm.state, { status: 'running' })
  const { size } = await stat(spec.files.output)
  await eventually('the program goes on', async () => (await stat(spec.files.output)).size > size)
  const files = { statePath: join(spec.directory, 'state'), memoryPath: join(spec.directory, 'memory') }
  await facetOf(vm).capture(files)
  t.same(vm.state, { status: 'paused' })
})

await t.test('a capture that is no longer wanted ends, leaves no files, and the VM runs on', async (t) => {
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, await makeDriver(), spec)
  await converse(t, fixture, vm)
  const why = new Error('no longer wanted')
  const files = { statePath: join(spec.directory, 'state'), memoryPath: join(spec.directory, 'memory') }
  const before = await contents(spec.directory)
  await t.rejects(facetOf(vm).capture(files, AbortSignal.abort(why)), why)
  const controller = new AbortController()
  const capturing = facetOf(vm).capture(files, controller.signal)
  await eventually('it has begun', () => existsSync(files.memoryPath))
  await t.rejects(facetOf(vm).capture({ ...files, statePath: `${files.statePath}-2` }), /captured already/)
  controller.abort(why)
  await t.rejects(capturing, why)
  t.same(await contents(spec.directory), before)
  t.same(vm.state, { status: 'running' })
})

await t.test('a VM whose memory is in no file is not captured without a path for it, and runs on', async (t) => {
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, await makeDriver(), spec)
  await t.rejects(facetOf(vm).capture({ statePath: join(spec.directory, 'state') }), { code: 'vm_capture_failed', message: /no path/ })
  t.same(vm.state, { status: 'running' })
})

await t.test('a restore that is no longer wanted leaves nothing', async (t) => {
  const driver = await makeDriver()
  const spec = await makeSpec(t, fixture)
  const vm = await launch(t, driver, spec)
  await converse(t, fixture, vm)
  const [statePath, memoryPath] = [join(spec.directory, 'state'), join(spec.directory, 'memory')]
  const image = await facetOf(vm).capture({ statePath, memoryPath })
  await vm.kill()
  const before = await contents(spec.directory)
  const why = new Error('no longer wanted')
  const controller = new AbortController()
  const restoring = imagingOf(driver).restore({ ...spec, memory: { path: memoryPath, sharing: 'private' } }, image, statePath, { signal: controller.signal })
  await eventually('its process is there', async () => (await processesIn(spec.directory)).length > 0 || controller.signal.aborted)
  controller.abort(why)
  await restoring.then((back) => back.kill(), (error: unknown) => t.equal(error, why))
  t.same(await contents(spec.directory), before)
  t.same(await processesIn(spec.directory), [])
})

await t.test('a handle from before there were memory images is taken over, without them', async (t) => {
  const driver = await makeDriver()
  const vm = await launch(t, driver, await makeSpec(t, fixture))
  vm.release()
  const old = await driver.attach({ ...vm.handle, details: undefined })
  t.same(old.state, { status: 'running' })
  t.equal(old.imaging, undefined)
  await old.kill()
})
