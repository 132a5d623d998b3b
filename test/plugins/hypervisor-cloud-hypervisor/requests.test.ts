// What Cloud Hypervisor is asked for, and what it is not: each trap of its API has a test here.
import t from 'tap'
import { isOlder } from '../../../core/compare-versions.ts'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { probeOnKvm, type KvmProbeOptions } from '../../../core/library/vmm/kvm-probe.ts'
import { checkImage } from '../../../core/library/vmm/shape.ts'
import { CLOUD_HYPERVISOR } from '../../../plugins/hypervisor-cloud-hypervisor/probe.ts'
import { DRIVER, IMAGE_VERSION } from '../../../plugins/hypervisor-cloud-hypervisor/names.ts'
import { checkPlugged, checkSpec, diskConfig, hasBalloon, restoreRequest, shapeOf, vmConfig } from '../../../plugins/hypervisor-cloud-hypervisor/spec.ts'
import { readState, withDiskSizes, withoutClockJump, writeState } from '../../../plugins/hypervisor-cloud-hypervisor/state.ts'
import { CLOUD_HYPERVISOR_RULES } from '../../vmm-double/cloud-hypervisor-rules.ts'
import { imageOf } from '../../vmm-double/image.ts'
import { doubleProgram } from '../../vmm-double/program.ts'
import { judge } from '../../vmm-double/rules.ts'
import { commands } from '../hypervisor-qemu/machine.ts'

const spec: VmSpec = {
  id: 'x',
  directory: '/vms/x',
  vcpus: 2,
  memoryBytes: 2 ** 27 + 1,
  kernel: { path: '/k', initrd: '/i', arguments: ['quiet'] },
  disks: [{ id: 'root', path: '/images/root', readonly: true }, { id: 'volume-0', path: '/vms/x/volume', readonly: false, unit: 7 }],
  network: { namespace: '/run/netns/x', tap: 'tap1', mac: '02:00:00:00:00:01' },
  files: { vmm: '/v', output: '/o', report: '/r' }
}
const configOf = (changes: Partial<VmSpec> = {}, balloonBytes?: number): Record<string, unknown> => vmConfig({ ...spec, ...changes }, { balloonBytes })

await t.test('every configuration is one of the API\'s document', async (t) => {
  for (const config of [configOf(), configOf({ diskBytesPerSecond: 1000 }, 0), configOf({ devices: [{ sysfs: '/sys/bus/pci/devices/0000:01:00.0' }] })]) {
    t.notMatch(judge(CLOUD_HYPERVISOR_RULES, 'new', 'PUT', '/vm.create', JSON.stringify(config)), { why: String })
  }
  t.match(judge(CLOUD_HYPERVISOR_RULES, 'new', 'PUT', '/vm.create', JSON.stringify({ ...configOf(), more: 1 })), { status: 400 }, 'and what is not is refused')
  t.match(judge(CLOUD_HYPERVISOR_RULES, 'started', 'PUT', '/vm.create', JSON.stringify(configOf())), { why: /not/ }, 'also in another phase')
  t.match(judge(CLOUD_HYPERVISOR_RULES, 'new', 'PUT', '/vm.boot', ''), { why: /not/ })
})

await t.test('trap, image type: each disk is named raw, so what a guest writes to its first sector decides nothing', async (t) => {
  for (const disk of spec.disks) t.match(diskConfig(disk, false), { image_type: 'Raw' })
  t.match(judge(CLOUD_HYPERVISOR_RULES, 'started', 'PUT', '/vm.add-disk', '{"path":"disk"}'), { status: 400 })
})

await t.test('trap, cache: disks go through the host\'s page cache, and a guest\'s flush reaches them', async (t) => {
  // There is no word for the cache, as Firecracker has one: flush is always offered, and `direct` is the only other way.
  for (const disk of spec.disks) t.notMatch(diskConfig(disk, false), { direct: true })
})

await t.test('trap, stale paths: all names lead to the VM\'s own folder, and each device has an id that a saved state finds it by', async (t) => {
  const config = configOf({}, 0)
  t.match(config, { vsock: { id: 'vsock', cid: 3, socket: /^[^/]+$/ }, payload: { kernel: /^[^/]+$/, initramfs: /^[^/]+$/ }, disks: [{ id: 'root', path: 'disk-root', serial: 'root' }, { id: 'volume-0', path: 'unit-7', serial: 'volume-0' }], net: [{ id: 'nic' }], balloon: { id: 'balloon' } })
  t.notMatch(JSON.stringify(config), /\/vms\//)
})

await t.test('trap, TAP and MAC: a restored VM has its own, since its configuration is made anew', async (t) => {
  const other = configOf({ network: { namespace: '/run/netns/y', tap: 'tap2', mac: '02:00:00:00:00:02' } })
  t.match(other, { net: [{ tap: 'tap2', mac: '02:00:00:00:00:02' }] })
  t.notMatch(Object((Object(other).net as unknown[])[0]), { host_mac: String }, 'it would be set, which needs a capability that the VMM has not')
})

await t.test('trap, addresses of the host: a TAP is left as it is, since older versions gave it an address and a mask unasked', async (t) => {
  t.same(Object.keys(Object((configOf()['net'] as unknown[])[0])).sort(), ['id', 'mac', 'tap'])
})

await t.test('trap, the console\'s file is emptied at each start: it is Cloud Hypervisor\'s own output, which is appended to the VM\'s', async (t) => {
  t.match(configOf(), { serial: { mode: 'Tty' }, console: { mode: 'Off' } })
})

await t.test('trap, processor and version: an image of another one is refused by its name', async (t) => {
  const image = imageOf(DRIVER, IMAGE_VERSION, shapeOf(spec, '53.0', 'this'))
  const check = (version: string, cpu: string): void => checkImage(image, { driver: DRIVER, version: IMAGE_VERSION }, shapeOf(spec, version, cpu))
  t.doesNotThrow(() => check('53.0', 'this'))
  t.throws(() => check('54.0', 'this'), { code: 'image_incompatible', message: /its vmm is "Cloud Hypervisor 53\.0", the VM's is "Cloud Hypervisor 54\.0"/ })
  t.throws(() => check('53.0', 'other'), { code: 'image_incompatible', message: /its cpu is "this", the VM's is "other"/ })
})

await t.test('trap, memory that goes back: nothing is plugged in, which only virtio-mem could take out again, and a VM with devices of the host keeps all of its memory', async (t) => {
  t.equal(Object(configOf()['memory']).hotplug_size, undefined)
  t.equal(hasBalloon({ balloon: true, devices: [{ sysfs: '/sys/x' }] }), false, 'a device of the host may write to all of it')
  t.equal(hasBalloon({ balloon: true }), true)
})

await t.test('trap, memory on demand: a restore copies all memory in before its guest runs, from a folder of the VM\'s own', async (t) => {
  const { method, path, body } = restoreRequest()
  t.notMatch(judge(CLOUD_HYPERVISOR_RULES, 'new', method, path, JSON.stringify(body)), { why: String })
  t.match(body, { memory_restore_mode: 'Copy', resume: false, source_url: /^file:\/\/[^/]+$/ })
  t.notMatch(body, { prefault: true })
})

await t.test('trap, socket path length: sockets are named in the working folder, however deep that is', async (t) => {
  t.ok(String(Object(configOf({ directory: `/${'d'.repeat(300)}` }).vsock).socket).length < 20)
})

await t.test('trap, rate limiter: a bucket is filled no faster than its pause of 100 ms', async (t) => {
  t.match(configOf({ diskBytesPerSecond: 1000 }), { rate_limit_groups: [{ id: 'disks', rate_limiter_config: { bandwidth: { size: 1000, refill_time: 1000 } } }], disks: [{ rate_limit_group: 'disks' }, { rate_limit_group: 'disks' }] })
  t.equal(configOf()['rate_limit_groups'], undefined)
})

await t.test('trap, numbers of a state: those that JavaScript cannot hold stay as they are, also when a disk has another size', async (t) => {
  const disk = JSON.stringify({ disk_path: 'disk-root', disk_nsectors: 8, avail_features: 1, acked_features: 1, config: { capacity: 8, seg_max: 126 } })
  const state = JSON.stringify({ snapshot_data: { state: '{"clock":18446744073709551615}' }, snapshots: { 'device-manager': { snapshot_data: null, snapshots: { root: { snapshots: {}, snapshot_data: { state: disk } } } } } })
  const written = writeState({ disks: [{ id: 'root', bytes: 4096 }], balloonBytes: 0 }, state)
  const read = readState(written)
  t.same(read, { captured: { disks: [{ id: 'root', bytes: 4096 }], balloonBytes: 0 }, state })
  t.equal(withDiskSizes(state, new Map()), state)
  const other = withDiskSizes(state, new Map([['root', 8192]]))
  t.match(other, /18446744073709551615/)
  const inner: unknown = JSON.parse(Object(JSON.parse(other)).snapshots['device-manager'].snapshots.root.snapshot_data.state)
  t.same(inner, { disk_path: 'disk-root', disk_nsectors: 16, avail_features: 1, acked_features: 1, config: { capacity: 16, seg_max: 126 } })
  t.throws(() => withDiskSizes(state, new Map([['other', 1]])), { code: 'vm_restore_failed', message: /other/ })
  for (const bad of ['', 'x', '{}\n{}', '{"disks":[1]}\n{}']) t.throws(() => readState(bad), { code: 'vm_restore_failed' }, bad)
})

await t.test('trap, clock: a restore moves none of the guest\'s clocks, since its agent is told the time and a jump would end what waits', async (t) => {
  const bytes = (flags: number): string => [...Array(8).fill(255), flags, ...Array(39).fill(0)].join()
  const stateWith = (flags: number): string => JSON.stringify({ snapshot_data: { state: `{"clock":{"Kvm":[${bytes(flags)}]},"common_cpuid":[{"eax":18446744073709551615}]}` }, snapshots: {} })
  t.equal(withoutClockJump(stateWith(14)), stateWith(10))
  t.equal(withoutClockJump(stateWith(2)), stateWith(2))
  for (const without of ['{"snapshot_data":{"state":"{}"}}', '{"snapshot_data":null}', '{}']) t.equal(withoutClockJump(without), without)
})

await t.test('a guest that cannot give memory back has no balloon, and one that can reports what is free', async (t) => {
  t.equal(configOf()['balloon'], undefined)
  t.match(configOf({}, 4096), { balloon: { size: 4096, deflate_on_oom: true, free_page_reporting: true } })
})

await t.test('what it cannot do is 501 with its name, and what makes no sense is refused', async (t) => {
  t.throws(() => checkSpec({ ...spec, hotplugBytes: 1 }), { code: 'not_supported', statusCode: 501, message: /cloud-hypervisor/ })
  const disk = { id: 'a', path: '/a', readonly: true }
  const bad: ReadonlyArray<Partial<VmSpec>> = [{ vcpus: 255 }, { memoryBytes: 1 }, { disks: [{ ...disk, id: 'A' }] }, { disks: [disk, disk] }, { disks: [{ ...disk, id: 'nic' }] }, { disks: [{ ...disk, unit: 64 }] }, { disks: [{ ...disk, unit: 1 }, { ...disk, id: 'b', unit: 1 }] }]
  for (const changed of bad) t.throws(() => checkSpec({ ...spec, ...changed }), { code: 'vm_spec_invalid' }, JSON.stringify(changed))
  t.throws(() => checkPlugged(disk), { code: 'vm_spec_invalid', message: /no unit/ })
})

await t.test('trap, versions: one whose guests hang after a restore is refused by its number', async (t) => {
  for (const version of ['51.1', '52.0', '9.0.0']) t.ok(isOlder(version, CLOUD_HYPERVISOR.oldest), version)
  for (const version of ['53.0', '53.0.0', '53.1', '100.0']) t.notOk(isOlder(version, CLOUD_HYPERVISOR.oldest), version)
  const options = (binary: string, kvm?: string): KvmProbeOptions => ({ binary, bootTimeoutMs: 60_000, commands, kernel: async () => ({ path: binary, version: '1' }), cache: { recall: async (_, find) => await find() }, ...kvm === undefined ? {} : { kvm } })
  const old = await doubleProgram('cloud-hypervisor', { BERTH_DOUBLE_VERSION: '51.1' })
  t.teardown(() => old.remove())
  t.match(await probeOnKvm(CLOUD_HYPERVISOR, options(old.path, old.kvm)), { supported: false, version: '51.1', reason: /older than 53\.0/ })
  const here = await doubleProgram('cloud-hypervisor')
  t.teardown(() => here.remove())
  t.match(await probeOnKvm(CLOUD_HYPERVISOR, options(here.path, here.kvm)), { supported: true, version: '53.0.0', acceleration: 'kvm' })
  t.match(await probeOnKvm(CLOUD_HYPERVISOR, { ...options(here.path, here.kvm), kernel: async () => ({ path: '/no/kernel', version: '1' }) }), { supported: false, reason: /did not boot under KVM/ })
  t.match(await probeOnKvm(CLOUD_HYPERVISOR, options('/no/cloud-hypervisor')), { supported: false, reason: /cloud-hypervisor/ })
})
