// Cases of putting other images in the place of a waiting guest's disks: what the guest starts from, what the VMM lets go of, and what a refusal leaves.
import { chmod, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Vm, VmDisk, VmSpec } from '../../../core/library/hypervisor.ts'
import { converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { captureHere, facetOf, imagingOf, own, ticking, waitingVm } from './image-fixture.ts'
import { vmmOf } from './vmm.ts'
import { eventually } from '../../helpers/eventually.ts'

const USER = { uid: 61_003, gid: 61_003 }

export async function replacingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('disks that are replaced', async (t) => {
    const probe = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    await probe.kill()
    if (probe.replaceDisk === undefined) return t.pass('the driver cannot', { skip: 'the driver replaces no disk' })
    for (const cases of [replacedCases, refusedCases]) await cases(t, fixture)
  })
}

/** The disks of another machine, in a folder that the VM's user passes through. */
async function otherDisks (fixture: HypervisorFixture, spec: VmSpec): Promise<readonly VmDisk[]> {
  const folder = await mkdtemp(join(spec.directory, 'other-'))
  await chmod(folder, 0o711)
  return (await fixture.makeMachine(folder)).disks
}

/** Puts the disks of another machine in the place of this one's; returns them. */
async function replaceAll (fixture: HypervisorFixture, vm: Vm, spec: VmSpec): Promise<readonly VmDisk[]> {
  const disks = await otherDisks(fixture, spec)
  for (const { id, path, readonly } of disks) {
    if (!readonly) await own(spec, path)
    await vm.replaceDisk?.(id, path)
  }
  return disks
}

const holds = async (fixture: HypervisorFixture, { handle }: Vm, path: string): Promise<boolean> => await vmmOf(fixture).holds(handle, path)

/** Writable disks: read-only ones are the same file for many machines. */
const writable = (disks: readonly VmDisk[]): readonly VmDisk[] => disks.filter(({ readonly }) => !readonly)

async function printed (spec: VmSpec, text: string): Promise<void> {
  await eventually(`the program says ${text}`, async () => (await readFile(spec.files.output, 'utf8')).includes(text))
}

async function replacedCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a guest that waits starts on the disks that it is given, and the old ones are closed', async (t) => {
    const spec = await makeSpec(t, fixture, process.getuid?.() === 0 ? { identity: USER } : {})
    const { vm } = await waitingVm(t, fixture, await fixture.makeDriver(), spec)
    const link = await converse(t, fixture, vm)
    let disks = spec.disks
    for (let turn = 1; turn <= 3; turn++) {
      const before = disks
      disks = await replaceAll(fixture, vm, spec)
      for (const { path } of writable(before)) t.notOk(await holds(fixture, vm, path), 'the old disk is closed')
      for (const { path } of writable(disks)) t.ok(await holds(fixture, vm, path), 'the new disk is open')
    }
    t.same(vm.state, { status: 'running' })
    await link.run(workload('print', 'new disks'))
    await printed(spec, 'new disks')
  })

  await t.test('also while it is paused, all at a time, and by a server that has taken it over', async (t) => {
    const spec = await makeSpec(t, fixture)
    const { vm: first } = await waitingVm(t, fixture, await fixture.makeDriver(), spec)
    await converse(t, fixture, first)
    await first.imaging?.pause()
    first.release()
    const vm = await (await fixture.makeDriver()).attach(first.handle)
    const disks = await otherDisks(fixture, spec)
    for (const { path } of writable(disks)) await own(spec, path)
    await Promise.all(disks.map(async ({ id, path }) => await vm.replaceDisk?.(id, path)))
    for (const { path } of writable(disks)) t.ok(await holds(fixture, vm, path))
    for (const { path } of writable(spec.disks)) t.notOk(await holds(fixture, vm, path))
    await vm.imaging?.resume()
    await (await converse(t, fixture, vm)).run(workload('print', 'after a pause'))
    await printed(spec, 'after a pause')
  })

  await t.test('a VM whose disks were replaced is captured and restored like any other', async (t) => {
    const driver = await fixture.makeDriver()
    if (driver.imaging === undefined) return
    const { vm, spec: made } = await waitingVm(t, fixture, driver, await makeSpec(t, fixture))
    const link = await converse(t, fixture, vm)
    const disks = await replaceAll(fixture, vm, made)
    await link.run(workload('tick'))
    const captured = await captureHere(t, fixture, vm, made)
    t.equal(captured.image.key, await driver.imaging.key({ ...made, disks }))
    await vm.kill()
    await writeFile(made.files.output, '')
    const spec: VmSpec = { ...made, disks, memory: { path: captured.memoryPath, sharing: 'shared' } }
    const back = await imagingOf(driver).restore(spec, captured.image, captured.statePath)
    t.teardown(() => back.kill())
    t.equal((await ticking(made.files.output, captured.tick.count)).nonce, captured.tick.nonce)
  })

  await t.test('a VM that was captured can be given other disks before it goes on', async (t) => {
    const { vm, spec } = await waitingVm(t, fixture, await fixture.makeDriver(), await makeSpec(t, fixture))
    if (vm.imaging === undefined) return
    const link = await converse(t, fixture, vm)
    // What it was restored from lies in the folder under the usual names.
    await facetOf(vm).capture({ statePath: join(spec.directory, 'state.captured'), memoryPath: join(spec.directory, 'memory.captured') })
    const disks = await replaceAll(fixture, vm, spec)
    await facetOf(vm).resume()
    for (const { path } of writable(disks)) t.ok(await holds(fixture, vm, path))
    // A capture may break the connection.
    link.close()
    await (await converse(t, fixture, vm)).run(workload('print', 'after a capture'))
    await printed(spec, 'after a capture')
  })
}

async function refusedCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a disk that cannot be replaced is as before', async (t) => {
    const asRoot = process.getuid?.() === 0
    const spec = await makeSpec(t, fixture, asRoot ? { identity: USER } : {})
    const { vm } = await waitingVm(t, fixture, await fixture.makeDriver(), spec)
    const link = await converse(t, fixture, vm)
    const [disk] = writable(spec.disks)
    if (disk === undefined) throw new Error('the machine needs a writable disk')
    await t.rejects(async () => await vm.replaceDisk?.('nothing', disk.path))
    await t.rejects(async () => await vm.replaceDisk?.(disk.id, `${disk.path}-missing`))
    const [foreign] = writable(await otherDisks(fixture, spec))
    if (asRoot && foreign !== undefined) await t.rejects(async () => await vm.replaceDisk?.(disk.id, foreign.path), 'the VM\'s user cannot open it')
    t.ok(await holds(fixture, vm, disk.path))
    await replaceAll(fixture, vm, spec)
    t.notOk(await holds(fixture, vm, disk.path), 'and it can be replaced after all')
    await link.run(workload('print', 'after refusals'))
    await printed(spec, 'after refusals')
  })

  await t.test('a VM that has ended refuses', async (t) => {
    const spec = await makeSpec(t, fixture)
    const vm = await launch(t, await fixture.makeDriver(), spec)
    await vm.kill()
    for (const { id, path } of spec.disks) await t.rejects(async () => await vm.replaceDisk?.(id, path))
  })
}
