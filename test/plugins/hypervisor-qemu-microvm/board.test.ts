// What QEMU is told of the board microvm, and what it is not asked for.
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { microvmBoard, tscKilohertz } from '../../../plugins/hypervisor-qemu-microvm/board.ts'
import { buildArgs, kernelArguments } from '../../../plugins/hypervisor-qemu/args.ts'
import { checkImage } from '../../../core/library/vmm/shape.ts'
import { shapeOf } from '../../../plugins/hypervisor-qemu/shape.ts'

const VIRTUAL = 'cpu MHz\t\t: 2599.998\nflags\t\t: fpu hypervisor lahf_lm\n'
const REAL = 'cpu MHz\t\t: 1200.000\nflags\t\t: fpu lahf_lm\n'
const board = microvmBoard(VIRTUAL)
const options = { accelerator: 'tcg', cpuModel: 'Nehalem', translationCacheMib: 64, board, vmmVersion: '7.2.22' } as const
const spec: VmSpec = {
  id: 'a', directory: '/d', vcpus: 1, memoryBytes: 2 ** 27, kernel: { path: '/k', initrd: '/i', arguments: [] },
  disks: [{ id: 'root', path: '/r', readonly: true }, { id: 'overlay', path: '/o', readonly: false }], files: { vmm: '/v', output: '/p', report: '/q' }
}

await t.test('devices sit on transports of their own, and none on PCI', async (t) => {
  const devices = buildArgs({ ...spec, network: { namespace: '/n', tap: 'tap0', mac: '02:00:00:00:00:01' } }, options).filter((_, index, all) => all[index - 1] === '-device')
  const buses = devices.flatMap((device) => /bus=virtio-mmio-bus\.(\d+)/.exec(device)?.[1] ?? [])
  t.equal(new Set(buses).size, buses.length)
  t.equal(buses.length, 6)
  t.notMatch(devices.join(' '), /pci/)
})

await t.test('what the board has not is refused: memory that is plugged in, devices of the host, a twentieth disk', async (t) => {
  t.throws(() => buildArgs({ ...spec, hotplugBytes: 2 ** 27 }, options), { code: 'vm_spec_invalid', message: /microvm takes none/ })
  t.throws(() => buildArgs({ ...spec, devices: [{ sysfs: '/s' }] }, options), { code: 'vm_spec_invalid', message: /no PCI/ })
  const disks = (count: number): VmSpec['disks'] => Array.from({ length: count }, (_, index) => ({ id: `disk-${index}`, path: '/x', readonly: true }))
  t.ok(buildArgs({ ...spec, disks: disks(19) }, options))
  t.throws(() => buildArgs({ ...spec, disks: disks(20) }, options), { code: 'vm_spec_invalid', message: /20 disks/ })
  t.same(board.features, ['disk-io-limit', 'removable-disks'])
})

await t.test('an emulated guest is told the rate of its clock, and where that is not known the board is not available', async (t) => {
  t.ok(kernelArguments(spec, options).includes('tsc_early_khz=2599998'))
  t.notMatch(kernelArguments(spec, { ...options, accelerator: 'kvm' }).join(' '), /tsc/)
  t.equal(board.refusal('tcg'), undefined)
  t.equal(tscKilohertz(REAL), undefined)
  t.match(microvmBoard(REAL).refusal('tcg'), /clock/)
  t.equal(microvmBoard(REAL).refusal('kvm'), undefined)
})

await t.test('an image of one board is refused on the other by name', async (t) => {
  const shape = await shapeOf(spec, options)
  const image = { driver: 'qemu', version: 1, vmmVersion: '7.2.22', key: 'k', shape: await shapeOf(spec, { ...options, board: undefined }), vcpus: 1, memoryBytes: 2 ** 27, stateBytes: 1, memoryStoredBytes: 1, capturedAt: '2026-01-01T00:00:00.000Z' }
  t.throws(() => checkImage(image, { driver: 'qemu-microvm', version: 1 }, shape), { code: 'image_incompatible', message: /made by the driver qemu, .* not by qemu-microvm/ })
})
