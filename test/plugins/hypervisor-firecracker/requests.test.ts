// What Firecracker is asked for, and what it is not: each trap of its API has a test here.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isOlder } from '../../../core/compare-versions.ts'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { VmmRefused } from '../../../core/library/vmm/errors.ts'
import { probeOnKvm } from '../../../core/library/vmm/kvm-probe.ts'
import { checkImage } from '../../../core/library/vmm/shape.ts'
import { captureOf } from '../../../plugins/hypervisor-firecracker/capture.ts'
import { FIRECRACKER } from '../../../plugins/hypervisor-firecracker/probe.ts'
import { DRIVER, IMAGE_VERSION } from '../../../plugins/hypervisor-firecracker/names.ts'
import { bootRequests, checkSpec, limitRequests, loadRequest, shapeOf } from '../../../plugins/hypervisor-firecracker/spec.ts'
import { folderOf } from '../../../plugins/hypervisor-firecracker/vm.ts'
import { testFolder } from '../../helpers/folder.ts'
import { FIRECRACKER_RULES } from '../../vmm-double/firecracker-rules.ts'
import { imageOf } from '../../vmm-double/image.ts'
import { doubleProgram } from '../../vmm-double/program.ts'
import { judge } from '../../vmm-double/rules.ts'
import { commands } from '../hypervisor-qemu/machine.ts'
import { makeDriver } from './machine.ts'

const spec: VmSpec = {
  id: 'x',
  directory: '/vms/x',
  vcpus: 2,
  memoryBytes: 2 ** 27 + 1,
  kernel: { path: '/k', initrd: '/i', arguments: ['quiet'] },
  disks: [{ id: 'root', path: '/images/root', readonly: true }, { id: 'volume-0', path: '/vms/x/volume', readonly: false }],
  network: { namespace: '/run/netns/x', tap: 'tap1', mac: '02:00:00:00:00:01' },
  files: { vmm: '/v', output: '/o', report: '/r' }
}
const bodyOf = (path: string, of = spec): Record<string, unknown> => ({ ...bootRequests(of).find((request) => request.path === path)?.body })

await t.test('every request is one of the API\'s document, in its phase', async (t) => {
  for (const { method, path, body } of bootRequests(spec)) t.notMatch(judge(FIRECRACKER_RULES, 'configured', method, path, JSON.stringify(body)), { why: String }, `${method} ${path}`)
  for (const { method, path, body } of limitRequests(['root', 'volume-0'], 100)) t.notMatch(judge(FIRECRACKER_RULES, 'started', method, path, JSON.stringify(body)), { why: String }, `${method} ${path}`)
  t.match(judge(FIRECRACKER_RULES, 'started', 'PUT', '/entropy', '{}'), { why: /not supported after starting/ }, 'and what is not is refused')
  t.match(judge(FIRECRACKER_RULES, 'new', 'PUT', '/entropy', '{"more":1}'), { status: 400 })
  t.match(judge(FIRECRACKER_RULES, 'configured', 'PUT', '/snapshot/load', '{"snapshot_path":"s","mem_backend":{"backend_type":"File","backend_path":"m"}}'), { why: /not allowed after configuring/ })
})

await t.test('trap, cache type: a guest\'s flush reaches the disk: the default would drop it', async (t) => {
  t.match(bodyOf('/drives/volume_0'), { cache_type: 'Writeback', is_read_only: false })
})

await t.test('trap, stale paths and socket path length: a snapshot holds no path of the VM that it was made of', async (t) => {
  t.match(bodyOf('/drives/root'), { path_on_host: /^[^/]+$/ })
  t.match(bodyOf('/vsock'), { uds_path: /^[^/]+$/, guest_cid: 3 })
})

await t.test('trap, TAP name on restore: a VM that is restored has its own, and one without a network asks for none', async (t) => {
  const { method, path, body } = loadRequest({ network: { namespace: '/run/netns/y', tap: 'tap2', mac: '02:00:00:00:00:02' } })
  t.notMatch(judge(FIRECRACKER_RULES, 'new', method, path, JSON.stringify(body)), { why: String })
  t.match(body, { network_overrides: [{ iface_id: String(bodyOf('/network-interfaces/nic')['iface_id']), host_dev_name: 'tap2' }] })
  t.notOk('network_overrides' in { ...loadRequest({}).body }, 'an override of a device that the snapshot has not is refused')
})

await t.test('trap, a clone\'s files: memory and state are found under the same names in every VM\'s folder, no process of ours has to page memory in, and the guest waits until all of it is there', async (t) => {
  t.match(loadRequest({}).body, { snapshot_path: /^[^/]+$/, mem_backend: { backend_type: 'File', backend_path: /^[^/]+$/ }, resume_vm: false })
})

await t.test('trap, a pause without a snapshot: a guest goes on only once it was told that its connections are gone, or it is never reached again', async (t) => {
  const asked: string[] = []
  const capture = captureOf(folderOf('/vms/x'), async (method, path, body) => {
    asked.push([path, ...Object.values(body)].join(' '))
    t.notMatch(judge(FIRECRACKER_RULES, 'started', method, path, JSON.stringify(body)), { why: String })
    if (JSON.stringify(body).includes('nowhere')) throw VmmRefused('Firecracker', `${method} ${path}`, 'Create snapshot error: Cannot perform open on the snapshot backing file: No such file or directory (os error 2)')
  })
  await capture.set('paused')
  await capture.set('running')
  t.same(asked.splice(0), ['/vm Paused', '/snapshot/create Full nowhere/state nowhere/memory', '/vm Resumed'], 'a snapshot that cannot be made tells it all the same')
  await capture.set('paused')
  await capture.write()
  await capture.set('running')
  t.same(asked, ['/vm Paused', '/snapshot/create Full captured-state captured-memory', '/vm Resumed'], 'one that was made has told it')
})

await t.test('trap, no reset of a device: no guest is asked to take its driver from a disk that it has used', async (t) => {
  t.match(await makeDriver(), { imaging: { disksStayBound: true } })
})

await t.test('trap, files of a snapshot: Firecracker writes over what is there, so that is removed first, and nothing but a whole snapshot is asked for', async (t) => {
  const directory = testFolder(t, { firecracker: { 'captured-state': 'of a server that was killed', 'captured-memory': 'of it, too', other: '' } })
  const asked: object[] = []
  const capture = captureOf(folderOf(directory), async (_method, _path, body) => { asked.push(body) })
  await capture.clear()
  t.same(await readdir(join(directory, 'firecracker')), ['other'])
  await capture.write()
  t.match(asked, [{ snapshot_type: 'Full' }], 'differences of before 1.15 were damaged beyond 3 GiB')
  t.match(bodyOf('/machine-config'), { track_dirty_pages: false })
})

await t.test('trap, processor and version: an image of another one is refused by its name', async (t) => {
  const image = imageOf(DRIVER, IMAGE_VERSION, shapeOf(spec, '1.16.1', 'this'))
  const check = (version: string, cpu: string): void => checkImage(image, { driver: DRIVER, version: IMAGE_VERSION }, shapeOf(spec, version, cpu))
  t.doesNotThrow(() => check('1.16.1', 'this'))
  t.throws(() => check('1.17.0', 'this'), { code: 'image_incompatible', message: /its vmm is "Firecracker 1\.16\.1", the VM's is "Firecracker 1\.17\.0"/ })
  t.throws(() => check('1.16.1', 'other'), { code: 'image_incompatible', message: /its cpu is "this", the VM's is "other"/ })
})

await t.test('trap, clock: a restore moves none of the guest\'s clocks, since its agent is told the time and a jump would end what waits', async (t) => {
  t.notOk('clock_realtime' in { ...loadRequest({}).body })
})

await t.test('the guest is told of its way to the host, and that the machine has no switch', async (t) => {
  t.match(bodyOf('/boot-source'), { boot_args: 'quiet berth.ports=vsock berth.off=reset' })
  t.match(bodyOf('/machine-config'), { mem_size_mib: 129, vcpu_count: 2 })
})

await t.test('a limit of all disks is divided among them, changed while the VM runs, and taken away', async (t) => {
  t.match(bodyOf('/drives/root', { ...spec, diskBytesPerSecond: 1000 }), { rate_limiter: { bandwidth: { size: 500, refill_time: 1000 } } })
  t.equal(bodyOf('/drives/root')['rate_limiter'], undefined)
  t.same(limitRequests(['root', 'volume-0'], undefined).map(({ body }) => body), ['root', 'volume_0'].map((id) => ({ drive_id: id, rate_limiter: { bandwidth: { size: 0, refill_time: 0 } } })))
})

await t.test('what it cannot do is 501 with its name', async (t) => {
  const cases: ReadonlyArray<Partial<VmSpec>> = [{ hotplugBytes: 1 }, { devices: [{ sysfs: '/sys/x' }] }, { disks: [{ id: 'a', path: '/a', readonly: false, unit: 0 }] }]
  for (const changed of cases) t.throws(() => checkSpec({ ...spec, ...changed }), { code: 'not_supported', statusCode: 501, message: /firecracker/ })
  for (const changed of [{ vcpus: 33 }, { memoryBytes: 1 }, { disks: [{ id: 'A', path: '/a', readonly: true }] }]) t.throws(() => checkSpec({ ...spec, ...changed }), { code: 'vm_spec_invalid' })
})

await t.test('trap, versions: one that loses the guest after a restore is refused by its number', async (t) => {
  t.ok(isOlder('1.16.0', FIRECRACKER.oldest))
  t.ok(isOlder('1.9.9', FIRECRACKER.oldest))
  for (const version of ['1.16.1', '1.17.0', '2.0.0']) t.notOk(isOlder(version, FIRECRACKER.oldest), version)
  const program = await doubleProgram('firecracker', { BERTH_DOUBLE_VERSION: '1.16.0' })
  t.teardown(() => program.remove())
  const probe = await probeOnKvm(FIRECRACKER, { binary: program.path, bootTimeoutMs: 1000, commands, kernel: async () => { throw new Error('not asked') }, cache: { recall: async (_, find) => await find() }, kvm: program.kvm })
  t.match(probe, { supported: false, version: '1.16.0', reason: /older than 1\.16\.1/ })
  t.match(await probeOnKvm(FIRECRACKER, { binary: '/no/firecracker', bootTimeoutMs: 1000, commands, kernel: async () => { throw new Error('not asked') }, cache: { recall: async (_, find) => await find() } }), { supported: false, reason: /firecracker/ })
})
