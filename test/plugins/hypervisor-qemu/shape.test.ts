// What makes two VMs fit the same memory image.
import t from 'tap'
import type { MemoryImage, VmSpec } from '../../../core/library/hypervisor.ts'
import { kernelArguments } from '../../../plugins/hypervisor-qemu/args.ts'
import { readonlyPrivate } from '../../../plugins/hypervisor-qemu/restore.ts'
import { checkImage as check, keyOf, type Shape } from '../../../core/library/vmm/shape.ts'
import { IMAGE_VERSION, shapeOf, type ShapeOptions } from '../../../plugins/hypervisor-qemu/shape.ts'

const spec: VmSpec = {
  id: 'abc',
  directory: '/vm',
  vcpus: 1,
  memoryBytes: 2 ** 28,
  kernel: { path: '/k/vmlinux', initrd: '/k/initrd', arguments: ['quiet'] },
  disks: [{ id: 'root', path: '/images/a', readonly: true }, { id: 'overlay', path: '/vm/o', readonly: false }],
  files: { vmm: '/vm/vmm.log', output: '/vm/output.log', report: '/vm/report' }
}
const options: ShapeOptions = { accelerator: 'tcg', cpuModel: 'Nehalem', translationCacheMib: 64, vmmVersion: '7.2.22' }

async function key (changes: Partial<VmSpec> = {}, others: Partial<ShapeOptions> = {}): Promise<string> {
  const changed = { ...spec, ...changes }
  return keyOf(await shapeOf(changed, { ...options, ...others }), kernelArguments(changed, { ...options, ...others }))
}

const checkImage = (image: MemoryImage, shape: Shape): void => check(image, { driver: 'qemu', version: IMAGE_VERSION }, shape)

await t.test('folder, files, user, disks\' paths and where the memory is make no difference', async (t) => {
  const same: Array<Partial<VmSpec>> = [
    { id: 'x' }, { directory: '/other' }, { files: { vmm: '/a', output: '/b', report: '/c' } }, { identity: { uid: 1, gid: 1 } },
    { diskBytesPerSecond: 1000 }, { groups: ['/sys/fs/cgroup/x'] }, { hotplugBytes: 0 }, { memory: { path: '/m', sharing: 'shared' } }, { memory: { path: '/m', sharing: 'private' } },
    { disks: spec.disks.map((disk) => ({ ...disk, path: '/elsewhere' })) }
  ]
  for (const changes of same) t.equal(await key(changes), await key(), Object.keys(changes).join())
  t.equal(await key({}, { translationCacheMib: 256 }), await key())
})

await t.test('whether there is a network device does; its TAP, namespace and MAC, and who moves its packets, do not', async (t) => {
  const network = { namespace: '/run/netns/a', tap: 'tap1', mac: '02:00:00:00:00:01' }
  const other = { namespace: '/run/netns/b', tap: 'tap2', mac: '02:00:00:00:00:02' }
  t.not(await key({ network }), await key())
  t.equal(await key({ network: other }), await key({ network }))
  t.equal(await key({ network }, { vhost: true }), await key({ network }))
  const { network: device, ...rest } = await shapeOf({ ...spec, network }, options)
  t.match(device, /virtio-net/)
  t.same(rest, await shapeOf(spec, options), 'and the shape of a VM without one is as ever')
})

await t.test('everything else does', async (t) => {
  const keys = await Promise.all([
    key(), key({ hotplugBytes: 2 ** 28 }), key({ hotplugBytes: 2 ** 29 }), key({ vcpus: 2 }), key({ balloon: true }), key({ memoryBytes: 2 ** 29 }), key({ disks: spec.disks.slice(1) }), key({ disks: spec.disks.map((disk) => ({ ...disk, readonly: true })) }),
    key({ kernel: { ...spec.kernel, arguments: ['quiet', 'nokaslr'] } }), key({}, { vmmVersion: '7.2.23' }), key({}, { accelerator: 'kvm' }), key({}, { cpuModel: 'max' })
  ])
  t.equal(new Set(keys).size, keys.length)
})

await t.test('the differences are told, each by its name', async (t) => {
  const shape = await shapeOf(spec, options)
  const image: MemoryImage = { driver: 'qemu', version: 1, vmmVersion: '7.2.22', key: 'k', shape, vcpus: 1, memoryBytes: 2 ** 28, stateBytes: 1, memoryStoredBytes: 1, capturedAt: '2026-01-01T00:00:00.000Z' }
  checkImage(image, shape)
  t.throws(() => checkImage(image, { ...shape, vmm: 'QEMU 9.0.0', cpu: 'max' }), { code: 'image_incompatible', message: /vmm is "QEMU 7.2.22", the VM's is "QEMU 9.0.0"; its cpu is "Nehalem", the VM's is "max"/ })
  t.throws(() => checkImage({ ...image, driver: 'vz' }, shape), { code: 'image_incompatible', message: /vz/ })
})

await t.test('memory is mapped from files opened for reading where QEMU can', async (t) => {
  const cases = { '7.2.22': false, '8.1.9': false, '8.2.0': true, '9.0.0': true, '10.0.2': true }
  for (const [version, expected] of Object.entries(cases)) t.equal(readonlyPrivate(version), expected, version)
})
