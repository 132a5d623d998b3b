// Cases of disks that come to a VM that runs, and go again: what the guest sees, what the VMM holds open, and what a refusal leaves.
import { chmod, chown, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Vm, VmDisk, VmSpec } from '../../../core/library/hypervisor.ts'
import { makeExt4 } from '../../../core/library/ext4.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
import { captureInto, sharedSpec, waitingVm } from './image-fixture.ts'
import { vmmOf } from './vmm.ts'

const MIB = 2 ** 20
const USER = { uid: 61_004, gid: 61_004 }
const commands = createHostCommands()

export async function pluggingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('disks that come and go', async (t) => {
    const probe = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture))
    await probe.kill()
    if (probe.plugDisk === undefined) return t.equal(probe.unplugDisk, undefined, 'a driver that plugs no disk takes none back')
    t.ok((await fixture.makeDriver()).features?.includes('removable-disks'), 'a driver that plugs disks says that it has them')
    for (const cases of fixture.isDouble === true ? [refusedCases] : [guestCases, ownDeviceCases, refusedCases, imageCases]) await cases(t, fixture)
  })
}

async function makeDisk (spec: VmSpec, unit: number, readonly = false): Promise<VmDisk> {
  const path = join(spec.directory, `disk-${unit}.ext4`)
  await makeExt4(commands, path, 16 * MIB)
  if (readonly) await chmod(path, 0o444)
  else if (spec.identity !== undefined) await chown(path, spec.identity.uid, spec.identity.gid)
  return { id: `volume-${unit}`, path, readonly, unit }
}

const holds = async (fixture: HypervisorFixture, { handle }: Vm, { path }: VmDisk): Promise<boolean> => await vmmOf(fixture).holds(handle, path)

const user = (): { identity?: NonNullable<VmSpec['identity']> } => process.getuid?.() === 0 ? { identity: USER } : {}
const mountOf = ({ id, readonly }: VmDisk, path: string) => ({ path, device: `serial:${id}`, readonly })

async function guestCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a guest mounts what came, and the VMM lets go of what it gave back', async (t) => {
    const spec = await makeSpec(t, fixture, user())
    const first = await makeDisk(spec, 2)
    const vm = await launch(t, await fixture.makeDriver(), { ...spec, disks: [...spec.disks, first] })
    const link = await converse(t, fixture, vm)
    await link.run({ ...workload('wait'), mounts: [mountOf(first, '/first')] })
    t.match(await link.stat('/first/lost+found', { follow: false }), { exists: true }, 'one that was there from the start')
    const second = await makeDisk(spec, 5)
    const third = await makeDisk(spec, 0, true)
    for (const disk of [second, third]) {
      await vm.plugDisk?.(disk)
      await vm.plugDisk?.(disk)
      t.ok(await holds(fixture, vm, disk))
      await link.mount(mountOf(disk, `/${disk.id}`))
      t.match(await link.stat(`/${disk.id}/lost+found`, { follow: false }), { exists: true })
    }
    await link.put({ path: '/volume-5/word', type: 'dir', mode: 0o700 }).result
    await t.rejects(link.put({ path: '/volume-0/word', type: 'dir', mode: 0o700 }).result, new Error('Read-only file system'), 'a read-only one')
    for (const disk of [second, third, first]) {
      await link.unmount(mountOf(disk, ''))
      await vm.unplugDisk?.(disk.id)
      await vm.unplugDisk?.(disk.id)
      t.notOk(await holds(fixture, vm, disk))
    }
    // What was written is there for the next.
    await commands.run('e2fsck', ['-n', '-f', second.path])
    t.match((await commands.run('debugfs', ['-R', 'stat word', second.path])).stdout, /directory/)
    await vm.plugDisk?.({ ...second, id: 'volume-9' })
    await link.mount({ path: '/again', device: 'serial:volume-9', readonly: false })
    t.match(await link.stat('/again/word', { follow: false }), { type: 'dir' })
    // Another server takes the VM over.
    vm.release()
    const later = await (await fixture.makeDriver()).attach(vm.handle)
    const again = await converse(t, fixture, later)
    await again.unmount({ device: 'serial:volume-9' })
    await later.unplugDisk?.('volume-9')
    t.notOk(await holds(fixture, later, second))
    await later.kill()
  })
}

async function ownDeviceCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a guest lets go of a disk that is a device of its own, and mounts it again', async (t) => {
    const spec = await makeSpec(t, fixture, user())
    const { unit: _, ...disk } = await makeDisk(spec, 2)
    const vm = await launch(t, await fixture.makeDriver(), { ...spec, disks: [...spec.disks, disk] })
    const link = await converse(t, fixture, vm)
    await link.run(workload('wait'))
    for (const time of ['first', 'second']) {
      await link.mount(mountOf(disk, '/volume'))
      t.match(await link.stat('/volume/lost+found', { follow: false }), { exists: true }, `its ${time} time`)
      await link.unmount(mountOf(disk, '/volume'))
      t.match(await link.stat('/volume/lost+found', { follow: false }), { exists: false })
    }
  })
}

async function refusedCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('what cannot be had leaves the VM as it was', async (t) => {
    const spec = await makeSpec(t, fixture, user())
    const vm = await launch(t, await fixture.makeDriver(), spec)
    const disk = await makeDisk(spec, 1)
    for (const bad of [{ ...disk, path: `${disk.path}.none` }, { ...disk, unit: 64 }, { ...disk, unit: -1 }, { ...disk, id: 'Bad id' }, { id: disk.id, path: disk.path, readonly: false }]) {
      await t.rejects(vm.plugDisk?.(bad) ?? Promise.resolve(), JSON.stringify(bad))
    }
    if (process.getuid?.() === 0) {
      await (await open(join(spec.directory, 'secret'), 'w', 0o600)).close()
      await t.rejects(vm.plugDisk?.({ ...disk, path: join(spec.directory, 'secret') }) ?? Promise.resolve(), 'not with the rights of the server')
    }
    await vm.plugDisk?.(disk)
    await t.rejects(vm.plugDisk?.({ ...disk, id: 'volume-2' }) ?? Promise.resolve(), 'a place that is taken')
    const other = await launch(t, await fixture.makeDriver(), await makeSpec(t, fixture, user()))
    await t.rejects(other.plugDisk?.(disk) ?? Promise.resolve(), 'what another VM writes')
    await vm.unplugDisk?.(disk.id)
    await other.plugDisk?.(disk)
    t.equal(vm.state.status, 'running')
    await Promise.all([vm.kill(), other.kill()])
    await t.rejects(vm.plugDisk?.(disk) ?? Promise.resolve(), 'a VM that has ended')
  })
}

async function imageCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  await t.test('a VM that is restored has the disks that came to it', async (t) => {
    const driver = await fixture.makeDriver()
    if (driver.imaging === undefined) return t.comment('the driver makes no memory images')
    const { vm, spec } = await waitingVm(t, fixture, driver, await sharedSpec(t, fixture, user()))
    const link = await converse(t, fixture, vm)
    await link.run(workload('wait'))
    const disk = await makeDisk(spec, 3)
    await vm.plugDisk?.(disk)
    await link.mount(mountOf(disk, '/volume'))
    await link.put({ path: '/volume/word', type: 'dir', mode: 0o700 }).result
    await link.sleep()
    const { image, statePath, memory } = await captureInto(vm, spec, 'asleep')
    await vm.kill()
    const restored = await driver.imaging.restore({ ...spec, memory, disks: [...spec.disks, disk] }, image, statePath)
    t.teardown(async () => { await restored.kill() })
    const again = await converse(t, fixture, restored)
    await again.wake()
    t.match(await again.stat('/volume/word', { follow: false }), { type: 'dir' })
    await again.unmount(mountOf(disk, ''))
    await restored.unplugDisk?.(disk.id)
    await commands.run('e2fsck', ['-n', '-f', disk.path])
  })
}
