// Cases of disks that become others while the guest has its driver on them: it is told of their sizes, and knows nothing of the old ones' content.
import { appendFile, copyFile, readFile, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { MemoryImage, Vm, VmDisk, VmSpec } from '../../../core/library/hypervisor.ts'
import { converse, launch, makeSpec, type HypervisorFixture } from './fixture.ts'
import { facetOf, imagingOf, own, sharedSpec } from './image-fixture.ts'
import { eventually } from '../../helpers/eventually.ts'

const SECTOR_BYTES = 512
const PLACEHOLDER_BYTES = 2 ** 40

export async function announcingCases (t: Test, fixture: HypervisorFixture): Promise<void> {
  const driver = await fixture.makeDriver()
  const skip = imagingOf(driver).announcesDisks === true ? false : 'the driver tells no guest of the size of its disks'
  await t.test('a guest that had its driver on its disks goes on with others, and its program finds their sizes and content', { skip }, async (t) => {
    const { image, statePath, spec: captured } = await captureBound(t, fixture)
    const spec = { ...await makeSpec(t, fixture), memory: captured.memory }
    await printsSizes(t, fixture, await restore(t, fixture, spec, image, statePath, ['root', 'overlay']), spec)
  })

  await t.test('also when they become others while it is paused', { skip }, async (t) => {
    const { image, statePath, spec: captured } = await captureBound(t, fixture)
    const vm = await restore(t, fixture, captured, image, statePath, [])
    await facetOf(vm).pause()
    const { disks } = await makeSpec(t, fixture)
    for (const { id, path, readonly } of disks) {
      if (!readonly) await own(captured, path)
      await vm.replaceDisk?.(id, path)
    }
    await facetOf(vm).resume()
    await printsSizes(t, fixture, vm, { ...captured, disks })
  })
}

/** A VM whose guest waits with its driver on disks that are larger than any other. */
async function captureBound (t: Test, fixture: HypervisorFixture): Promise<{ readonly image: MemoryImage, readonly statePath: string, readonly spec: VmSpec }> {
  const made = await sharedSpec(t, fixture)
  const disks = await Promise.all(made.disks.map(async (disk) => await placeholder(made, disk)))
  const spec = { ...made, disks }
  const vm = await launch(t, await fixture.makeDriver(), spec)
  const link = await converse(t, fixture, vm)
  await link.bind()
  await link.bind()
  link.close()
  const statePath = join(spec.directory, 'state')
  const image = await facetOf(vm).capture({ statePath })
  await vm.kill()
  return { image, statePath, spec }
}

async function placeholder (spec: VmSpec, disk: VmDisk): Promise<VmDisk> {
  const path = join(spec.directory, `placeholder-${disk.id}`)
  await copyFile(disk.path, path)
  // Another content, which a cache would show.
  await truncate(path, 0)
  await appendFile(path, Buffer.alloc(2 ** 20, 'placeholder'))
  await truncate(path, PLACEHOLDER_BYTES)
  if (!disk.readonly) await own(spec, path)
  return { ...disk, path }
}

async function restore (t: Test, fixture: HypervisorFixture, spec: VmSpec, image: MemoryImage, statePath: string, otherDisks: readonly string[]): Promise<Vm> {
  const vm = await imagingOf(await fixture.makeDriver()).restore(spec, image, statePath, { otherDisks })
  t.teardown(() => vm.kill())
  return vm
}

async function printsSizes (t: Test, fixture: HypervisorFixture, vm: Vm, spec: VmSpec): Promise<void> {
  const link = await converse(t, fixture, vm)
  await link.run({ argv: ['/bin/busybox', 'cat', '/sys/block/vda/size', '/sys/block/vdb/size', '/sys/block/vda/ro', '/sys/block/vdb/ro'], env: {}, cwd: '/', user: '', hostname: 'conformance', mounts: [], agent: true })
  const sizes = await Promise.all(spec.disks.map(async ({ path }) => String((await stat(path)).size / SECTOR_BYTES)))
  const printed = async (): Promise<readonly string[]> => (await readFile(spec.files.output, 'utf8')).split('\n').slice(0, -1)
  await eventually('the program has printed', async () => (await printed()).length === 4)
  t.strictSame(await printed(), [...sizes, ...spec.disks.map(({ readonly }) => readonly ? '1' : '0')])
}
