// Cases of memory images: a VM goes on where it was captured. Its nonce and counter are in the guest's memory alone, so a reboot would lose both.
import { readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { CaptureFiles, VmSpec } from '../../../core/library/hypervisor.ts'
import type { GuestLink } from '../../../plugins/guest/contract.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { syncMemoryImage } from '../../../core/library/memory-image.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { eventually } from '../../helpers/eventually.ts'
import { contents, converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { captureHere, capturedShared, facetOf, forkSpec, imagingOf, lastTick, own, runAndCapture, sharedSpec, ticking, waitingVm } from './image-fixture.ts'
import { keepingCases } from './keeping.ts'
import { imagingCrashCases } from './imaging-crashes.ts'
import { guestRun } from './network-fixture.ts'
import { announcingCases } from './announcing.ts'
import { startingAheadCases } from './starting-ahead.ts'
import { vmmOf, withoutProcess } from './vmm.ts'

const MIB = 2 ** 20
/** more than clocks may differ by */
const LAIN_MS = 4000
const commands = createHostCommands()

export async function imagingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await group(t, 'memory images', fixture, [standbyCases, startingAheadCases, announcingCases])
}

export async function changingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await group(t, 'memory images whose memory, user or files are others', fixture, [hotplugCases, userCases, refusalCases])
}

export async function forkingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await group(t, 'copies of memory images', fixture, [forkCases])
}

export async function leavingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await group(t, 'captured VMs that a server leaves', fixture, [keepingCases, async (t) => {
    await t.test('servers that are killed', { skip: withoutProcess(fixture) }, async (t) => { await imagingCrashCases(t, fixture) })
  }])
}

async function group (t: Test, name: string, fixture: HypervisorFixture, all: ReadonlyArray<(t: Test, fixture: HypervisorFixture) => Promise<void>>): Promise<void> {
  const { imaging } = await fixture.makeDriver()
  await t.test(name, { skip: imaging === undefined ? 'the driver makes none' : false }, async (t) => {
    for (const cases of all) await cases(t, fixture)
  })
}

async function standbyCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('capture, end, restore: the program goes on, and the guest answers on a new stream', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const { spec, image, statePath, memoryPath, tick, bootId } = captured
    await syncMemoryImage([statePath, memoryPath])
    t.same(JSON.parse(JSON.stringify(image)), image, 'the image is plain JSON')
    t.equal(image.key, await imagingOf(driver).key(spec))
    t.equal((await stat(statePath)).size, image.stateBytes)
    t.equal((await stat(memoryPath)).size, spec.memoryBytes)
    t.ok(image.memoryStoredBytes > 0 && image.memoryStoredBytes < spec.memoryBytes)
    await writeFile(spec.files.output, '')
    const back = await imagingOf(driver).restore(spec, image, statePath)
    t.teardown(() => back.kill())
    t.same(back.state, { status: 'running' })
    const after = await ticking(spec.files.output, tick.count)
    t.equal(after.nonce, tick.nonce)
    t.ok(after.count < tick.count + 1000, 'and did not run on meanwhile')
    const hello = await (await converse(t, fixture, back)).hello
    t.equal(hello.bootId, bootId)
    t.equal(hello.phase, 'running')
    const again = await captureHere(t, fixture, back, { ...spec, directory: await folderFor(t, fixture) })
    t.equal(again.image.key, image.key, 'a restored VM can be captured in its turn')
  })

  await t.test('a VM without a memory file is captured by writing its memory, and restored from that', async (t) => {
    const driver = await fixture.makeDriver()
    const spec = await makeSpec(t, fixture)
    const vm = await launch(t, driver, spec)
    t.equal(facetOf(vm).memoryFile, undefined)
    const captured = await runAndCapture(t, fixture, vm, spec)
    await vm.kill()
    const { blocks, size } = await stat(captured.memoryPath)
    t.equal(size, spec.memoryBytes)
    t.ok(blocks * 512 < size, 'with holes')
    await writeFile(spec.files.output, '')
    const back = await imagingOf(driver).restore({ ...spec, memory: { path: captured.memoryPath, sharing: 'shared' } }, captured.image, captured.statePath)
    t.teardown(() => back.kill())
    t.equal((await ticking(spec.files.output, captured.tick.count)).nonce, captured.tick.nonce)
  })

  // Guests without a kernel have no clock of their own.
  const skip = fixture.hasNetwork === true ? false : 'its guests have no clock'
  await t.test('a guest that wakes from an image goes by the host\'s clock, however long the image lay there, and has not been up for that time', { skip }, async (t) => {
    const driver = await fixture.makeDriver()
    const spec = await sharedSpec(t, fixture)
    const vm = await launch(t, driver, spec)
    const link = await converse(t, fixture, vm)
    await link.run(workload('tick'))
    const uptime = async (of: GuestLink): Promise<number> => Number((await guestRun(of, ['cat', '/proc/uptime'])).split(' ')[0]) * 1000
    const [began, before] = [performance.now(), await uptime(link)]
    await link.sleep()
    const statePath = join(spec.directory, 'state')
    const memoryPath = join(spec.directory, 'memory-written')
    const image = await facetOf(vm).capture({ statePath, memoryPath })
    await vm.kill()
    await sleep(LAIN_MS)
    const path = facetOf(vm).memoryFile ?? memoryPath
    await own(spec, path)
    const back = await imagingOf(driver).restore({ ...spec, memory: { path, sharing: 'shared' } }, image, statePath)
    t.teardown(() => back.kill())
    const again = await converse(t, fixture, back)
    await again.wake()
    const asked = Math.floor(Date.now() / 1000)
    const told = Number(await guestRun(again, ['date', '+%s']))
    t.ok(told >= asked - 1 && told <= Math.ceil(Date.now() / 1000) + 1, `it says ${told}, and was asked at ${asked}`)
    const missed = performance.now() - began - (await uptime(again) - before)
    t.ok(missed > LAIN_MS / 2, `what waits in it has not waited for ${Math.round(missed)} ms of that time`)
  })

  await t.test('a guest that was paused, and not captured, is reached as before', async (t) => {
    const { vm, spec } = await waitingVm(t, fixture, await fixture.makeDriver(), await sharedSpec(t, fixture))
    for (const time of ['first', 'second']) {
      await facetOf(vm).pause()
      await facetOf(vm).resume()
      const link = await converse(t, fixture, vm)
      t.equal((await link.hello).phase, 'waiting', `after its ${time} pause`)
      link.close()
    }
    await (await converse(t, fixture, vm)).run(workload('tick'))
    t.ok(await ticking(spec.files.output))
  })

  await t.test('a VM waits while it is paused, and a captured one goes on when it is resumed', async (t) => {
    const { vm, captured: { spec, statePath, tick } } = await capturedShared(t, fixture)
    t.same(vm.state, { status: 'paused' })
    const imaging = facetOf(vm)
    await imaging.pause()
    const before = await lastTick(spec.files.output)
    await new Promise((resolve) => setTimeout(resolve, 200))
    t.same(await lastTick(spec.files.output), before)
    await imaging.resume()
    await imaging.resume()
    t.same(vm.state, { status: 'running' })
    t.equal((await ticking(spec.files.output, (before?.count ?? 0) + 5)).nonce, tick.nonce)
    const files = (name: string): CaptureFiles => ({ statePath: name, memoryPath: `${name}-memory` })
    await t.rejects(imaging.capture(files(statePath)), { code: 'EEXIST' })
    t.same(vm.state, { status: 'running' }, 'a capture that fails leaves a running VM running')
    for (const again of [2, 3]) {
      await imaging.capture(files(`${statePath}-${again}`))
      t.same(vm.state, { status: 'paused' })
    }
  })
}

async function hotplugCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const { features } = await fixture.makeDriver()
  const skip = features?.includes('hotplug-memory') === true ? false : 'the driver plugs no memory in'
  for (const where of ['in no file', 'in a file']) {
    await t.test(`memory that is plugged in beside memory ${where} goes on with what it holds`, { skip }, async (t) => {
      const driver = await fixture.makeDriver()
      const spec = { ...where === 'in a file' ? await sharedSpec(t, fixture) : await makeSpec(t, fixture), hotplugBytes: 128 * MIB }
      const sums = async (): Promise<Set<string>> => new Set((await readFile(spec.files.output, 'utf8')).split('\n').slice(0, -1))
      const vm = await launch(t, driver, spec)
      // The kernel takes from what was plugged in first.
      await (await converse(t, fixture, vm)).run(workload('hold', '48'))
      await eventually('it holds something', async () => (await sums()).size > 0)
      const before = await sums()
      const [statePath, written] = ['state', 'memory-written'].map((name) => join(spec.directory, name))
      const image = await facetOf(vm).capture({ statePath: statePath ?? '', memoryPath: written ?? '' })
      await vm.kill()
      await writeFile(spec.files.output, '')
      const back = await imagingOf(driver).restore({ ...spec, memory: { path: spec.memory?.path ?? written ?? '', sharing: 'shared' } }, image, statePath ?? '')
      t.teardown(() => back.kill())
      await eventually('it has looked again', async () => (await sums()).size > 0)
      t.same(await sums(), before)
      t.equal((await (await converse(t, fixture, back)).hello).phase, 'running')
    })
  }
}

async function userCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const skip = process.getuid?.() === 0 ? withoutProcess(fixture) : 'only root can give a VM a user of its own'
  await t.test('a VM with a user of its own is captured, and restored as another user', { skip }, async (t) => {
    const driver = await fixture.makeDriver()
    const spec = await sharedSpec(t, fixture, { deep: true, identity: { uid: 61_001, gid: 61_001 } })
    const vm = await launch(t, driver, spec)
    const captured = await runAndCapture(t, fixture, vm, spec)
    await vm.kill()
    t.equal((await stat(captured.statePath)).uid, process.getuid?.(), 'what it will be restored from is not its own to change')
    const other = { ...await forkSpec(t, fixture, captured), identity: { uid: 61_002, gid: 61_002 } }
    const path = join(other.directory, 'memory')
    await copySparse(commands, captured.memoryPath, path)
    for (const mine of [path, ...Object.values(other.files), ...other.disks.filter((disk) => !disk.readonly).map((disk) => disk.path)]) await own(other, mine)
    const back = await imagingOf(driver).restore({ ...other, memory: { path, sharing: 'shared' } }, captured.image, captured.statePath)
    t.teardown(() => back.kill())
    t.match(await readFile(`/proc/${back.handle.pid}/status`, 'utf8'), /^Uid:(\s+61002){4}$/m)
    t.equal((await ticking(other.files.output, captured.tick.count)).nonce, captured.tick.nonce)
  })
}

async function forkCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('restores of one private image run at the same time, do not see each other\'s writes, and leave the image as it was', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    await vm.kill()
    const before = await readFile(captured.memoryPath)
    const specs = [await forkSpec(t, fixture, captured), await forkSpec(t, fixture, captured)] as const
    const vms = await Promise.all(specs.map((spec) => imagingOf(driver).restore(spec, captured.image, captured.statePath)))
    for (const fork of vms) t.teardown(() => fork.kill())
    const [a, b] = vms
    if (a === undefined || b === undefined) throw new Error('two were restored')
    t.equal((await ticking(specs[0].files.output, captured.tick.count)).nonce, captured.tick.nonce)
    await facetOf(a).pause()
    // One stands still while the other counts on: with memory in common, it would have counted too.
    const there = await lastTick(specs[0].files.output)
    await ticking(specs[1].files.output, (there?.count ?? 0) + 50)
    await facetOf(a).resume()
    const went = await ticking(specs[0].files.output, there?.count)
    t.ok(went.count < (there?.count ?? 0) + 50, `it goes on from ${there?.count} and not from the other's count`)
    const copy = await captureHere(t, fixture, b, specs[1])
    t.not(copy.memoryPath, captured.memoryPath, 'memory that is private is written to a file of its own')
    await Promise.all(vms.map((fork) => fork.kill()))
    t.ok(before.equals(await readFile(captured.memoryPath)))
    const third = await forkSpec(t, fixture, copy)
    const grandchild = await imagingOf(driver).restore(third, copy.image, copy.statePath)
    t.teardown(() => grandchild.kill())
    t.equal((await ticking(third.files.output, copy.tick.count)).nonce, captured.tick.nonce)
  })

  await t.test('VMs made of one that was captured before its program started get disks and programs of their own', async (t) => {
    const driver = await fixture.makeDriver()
    const source = await sharedSpec(t, fixture)
    const vm = await launch(t, driver, source)
    const { bootId } = await (await converse(t, fixture, vm)).hello
    const statePath = join(source.directory, 'state')
    const written = join(source.directory, 'memory-written')
    const image = await facetOf(vm).capture({ statePath, memoryPath: written })
    await vm.kill()
    const memoryPath = facetOf(vm).memoryFile ?? written
    await own(source, memoryPath)
    await Promise.all(['one', 'two'].map(async (text) => {
      const spec = { ...await makeSpec(t, fixture), memory: { path: memoryPath, sharing: 'private' as const } }
      t.equal(await imagingOf(driver).key(spec), image.key)
      const clone = await imagingOf(driver).restore(spec, image, statePath)
      t.teardown(() => clone.kill())
      const link = await converse(t, fixture, clone)
      t.match(await link.hello, { bootId, phase: 'waiting' })
      await link.run(workload('print', text))
      await clone.wait()
      t.equal(await readFile(spec.files.output, 'utf8'), `${text}\n`)
      t.match(await readFile(spec.files.report, 'utf8'), /^exit_code=0$/m)
    }))
  })

  await t.test('a running source goes on after its memory was copied, and the copy is a VM of its own', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    const spec = await forkSpec(t, fixture, captured)
    const path = join(spec.directory, 'memory')
    await copySparse(commands, captured.memoryPath, path)
    await facetOf(vm).resume()
    await own(spec, path)
    const fork = await imagingOf(driver).restore({ ...spec, memory: { path, sharing: 'shared' } }, captured.image, captured.statePath)
    t.teardown(() => fork.kill())
    t.equal((await ticking(spec.files.output, captured.tick.count)).nonce, captured.tick.nonce)
    t.equal((await ticking(captured.spec.files.output, captured.tick.count + 5)).nonce, captured.tick.nonce)
    t.same([vm.state.status, fork.state.status], ['running', 'running'])
  })
}

async function refusalCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a VM of another shape, and an image of another VMM, are refused with what differs, and nothing is left', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured: { spec, image, statePath } } = await capturedShared(t, fixture)
    await vm.kill()
    const before = await contents(spec.directory)
    const others: ReadonlyArray<readonly [RegExp, VmSpec, typeof image]> = [
      [/vcpus is "1", the VM's is "2"/, { ...spec, vcpus: 2 }, image],
      [/memory is/, { ...spec, memoryBytes: spec.memoryBytes * 2 }, image],
      [/disks is/, { ...spec, disks: spec.disks.map((disk) => ({ ...disk, readonly: true })) }, image],
      [/disks is/, { ...spec, disks: [...spec.disks, { id: 'more', path: '/dev/null', readonly: true }] }, image],
      [/vmm is/, spec, { ...image, shape: { ...image.shape, vmm: 'QEMU 0.9' } }],
      [/cpu is/, spec, { ...image, shape: { ...image.shape, cpu: 'another' } }],
      [/driver/, spec, { ...image, driver: 'another' }],
      [/version/, spec, { ...image, version: 1000 }]
    ]
    for (const [message, other, otherImage] of others) {
      await t.rejects(imagingOf(driver).restore(other, otherImage, statePath), { code: 'image_incompatible', message })
      t.not(other === spec ? '' : await imagingOf(driver).key(other), image.key)
    }
    t.same(await contents(spec.directory), before)
    t.same(await processesIn(spec.directory), [])
  })

  await t.test('a state file that was cut or spoilt, or a wrong memory file, is refused, and nothing is left', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured: { spec, image, statePath, memoryPath } } = await capturedShared(t, fixture)
    await vm.kill()
    const good = await readFile(statePath)
    const before = await contents(spec.directory)
    await truncate(statePath, Math.floor(image.stateBytes / 2))
    await t.rejects(imagingOf(driver).restore(spec, image, statePath), { code: 'image_damaged' })
    await t.rejects(imagingOf(driver).restore(spec, { ...image, stateBytes: Math.floor(image.stateBytes / 2) }, statePath), { code: 'vm_restore_failed', message: /\w+ \w+/ })
    await writeFile(statePath, Buffer.alloc(good.length, 'x'))
    await t.rejects(imagingOf(driver).restore(spec, image, statePath), { code: 'vm_restore_failed' })
    await writeFile(statePath, good)
    await t.rejects(imagingOf(driver).restore({ ...spec, memory: { path: statePath, sharing: 'private' } }, image, statePath), { code: 'vm_spec_invalid' })
    await t.rejects(imagingOf(driver).restore({ ...spec, memory: { path: `${memoryPath}-none`, sharing: 'shared' } }, image, statePath), { code: 'ENOENT' })
    t.same(await contents(spec.directory), before)
    t.same(await processesIn(spec.directory), [])
    await imagingOf(driver).restore(spec, image, statePath).then((back) => back.kill())
  })

  await t.test('memory that one VM writes is not given to another', async (t) => {
    const driver = await fixture.makeDriver()
    const { vm, captured } = await capturedShared(t, fixture)
    const other = await forkSpec(t, fixture, captured)
    // Memory that was written out is nobody's.
    for (const sharing of facetOf(vm).memoryFile === undefined ? [] : ['shared', 'private'] as const) {
      await t.rejects(imagingOf(driver).restore({ ...other, memory: { path: captured.memoryPath, sharing } }, captured.image, captured.statePath), { code: 'memory_in_use' })
    }
    t.ok(vmmOf(fixture).isAlive(vm.handle))
    await vm.kill()
    const reader = await imagingOf(driver).restore(other, captured.image, captured.statePath)
    t.teardown(() => reader.kill())
    await t.rejects(imagingOf(driver).restore(captured.spec, captured.image, captured.statePath), { code: 'memory_in_use' }, 'nor is what others read given to a writer')
  })
}

async function folderFor (t: Test, fixture: HypervisorFixture): Promise<string> {
  return (await makeSpec(t, fixture)).directory
}
