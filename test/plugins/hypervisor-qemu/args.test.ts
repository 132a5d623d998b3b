// QEMU's command line, by table.
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { buildArgs, defaultCpuModel, removableDevice, type ArgsOptions } from '../../../plugins/hypervisor-qemu/args.ts'
import { shapeOf } from '../../../plugins/hypervisor-qemu/shape.ts'

const spec: VmSpec = {
  id: 'abc',
  directory: '/vm',
  vcpus: 2,
  memoryBytes: 300 * 2 ** 20 + 1,
  kernel: { path: '/k/vmlinux', initrd: '/k/initrd', arguments: ['console=ttyS0', 'quiet'] },
  disks: [
    { id: 'root', path: '/images/a,b.erofs', readonly: true },
    { id: 'volume-0', path: '/vm/v.img', readonly: false }
  ],
  files: { vmm: '/vm/vmm,1.log', output: '/vm/output.log', report: '/vm/report' }
}
const options: ArgsOptions = { accelerator: 'tcg', cpuModel: 'max', translationCacheMib: 64 }
const NETWORK = { namespace: '/run/netns/berth', tap: 'bt1', mac: '02:00:00:0a:00:01' }
const line = (changes: Partial<VmSpec> = {}, others: Partial<ArgsOptions> = {}): string => buildArgs({ ...spec, ...changes }, { ...options, ...others }).join(' ')

await t.test('each part of a specification has its argument', async (t) => {
  const cases: ReadonlyArray<readonly [what: string, expected: string]> = [
    ['name', '-name berth-abc'],
    ['accelerator', '-accel tcg,thread=multi,tb-size=64'],
    ['cpu model', '-cpu max'],
    ['vcpus', '-smp cpus=2'],
    ['memory, rounded up to MiB', '-m 301M'],
    ['memory, as an object that a memory image can replace', '{"qom-type":"memory-backend-ram","id":"memory","size":315621376}'],
    ['no core dump of guest memory', 'dump-guest-core=off'],
    ['control socket, relative', '-qmp unix:qmp.sock,server=on,wait=off'],
    ['agent socket, relative', 'socket,id=agent,path=agent.sock,server=on,wait=off'],
    ['kernel', '-kernel /k/vmlinux -initrd /k/initrd -append console=ttyS0 quiet no_timer_check nopti pci=lastbus=0'],
    ['a comma in a chardev\'s path', 'file,id=vmm,path=/vm/vmm,,1.log,append=on'],
    ['output', 'file,id=output,path=/vm/output.log,append=on'],
    ['report', 'file,id=report,path=/vm/report,append=on'],
    ['ports', 'virtserialport,bus=ports.0,nr=2,chardev=output,id=port-output,name=berth.output'],
    ['a comma in a disk\'s path', '"filename":"/images/a,b.erofs"'],
    ['the first disk', 'virtio-blk-pci,drive=disk-root,id=blk-root,serial=root,bus=pcie.0,addr=0x8,'],
    ['the second disk', 'virtio-blk-pci,drive=disk-volume-0,id=blk-volume-0,serial=volume-0,werror=stop,rerror=report,bus=pcie.0,addr=0x9,'],
    ['sandbox', '-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny']
  ]
  for (const [what, expected] of cases) t.ok(line().includes(expected), `${what}: ${expected}`)
})

await t.test('memory in a file is mapped as asked, under the same name', async (t) => {
  const object = (memory: VmSpec['memory'], readonlyPrivate?: boolean): unknown => {
    const args = buildArgs({ ...spec, memory }, options, readonlyPrivate === undefined ? undefined : { readonlyPrivate })
    return JSON.parse(args.find((arg) => arg.includes('memory-backend-')) ?? '')
  }
  const file = { 'qom-type': 'memory-backend-file', id: 'memory', size: 301 * 2 ** 20, align: 2 ** 21, 'mem-path': '/vm/m,1' }
  t.same(object({ path: '/vm/m,1', sharing: 'shared' }), { ...file, share: true })
  t.same(object({ path: '/vm/m,1', sharing: 'private' }, false), { ...file, share: false })
  t.same(object({ path: '/vm/m,1', sharing: 'private' }, true), { ...file, 'mem-path': '/proc/self/fd/9', share: false, readonly: true, rom: 'off' }, 'it is lent what it need not be able to reach')
  t.throws(() => object({ path: '/vm/m,1', sharing: 'private' }), /needs an image/)
})

await t.test('a VM that is restored waits for its state', async (t) => {
  t.ok(buildArgs(spec, options, { readonlyPrivate: false }).join(' ').endsWith(' -S -incoming defer'))
  t.notOk(line().includes('-incoming'))
})

await t.test('read-only disks are opened read-only', async (t) => {
  const nodes = buildArgs(spec, options).filter((arg) => arg.startsWith('{"driver":')).map((arg) => JSON.parse(arg))
  const disk = (name: string, readonly: boolean) => ({ 'node-name': name, 'read-only': readonly, file: { driver: 'raw', 'read-only': readonly } })
  t.match(nodes, [disk('disk-root', true), disk('disk-volume-0', false)])
})

await t.test('a write that fails on the host, for whatever reason, stops the VM; a disk that is only read stops none', async (t) => {
  const policies = (readonly: boolean): unknown => removableDevice({ id: 'v', path: '/v', readonly, unit: 0 })
  t.match(policies(false), { werror: 'stop', rerror: 'report' })
  t.notMatch(JSON.stringify(policies(true)), /error/)
  const devices = buildArgs(spec, options).filter((arg) => arg.startsWith('virtio-blk-pci,'))
  t.same(devices.map((device) => /werror=\w+,rerror=\w+/.exec(device)?.[0]), [undefined, 'werror=stop,rerror=report'])
  const shape = async (disks: VmSpec['disks']): Promise<unknown> => await shapeOf({ ...spec, disks }, { ...options, vmmVersion: '7.2.22' })
  t.match(await shape(spec.disks), { ...await shape([]) as object, disks: 'root (read-only), volume-0 (writable)' }, 'no part of a memory image depends on it')
})

await t.test('all disks are in one group of limits, which lets everything pass unless there is one', async (t) => {
  const limits = (changes: Partial<VmSpec>): unknown => buildArgs({ ...spec, ...changes }, options).filter((arg) => arg.includes('"throttle-group","id"')).map((arg) => JSON.parse(arg))
  t.same(limits({}), [{ 'qom-type': 'throttle-group', id: 'disks', limits: { 'bps-total': 0 } }])
  t.same(limits({ diskBytesPerSecond: 5_000_000 }), [{ 'qom-type': 'throttle-group', id: 'disks', limits: { 'bps-total': 5_000_000 } }])
  t.equal(buildArgs(spec, options).filter((arg) => arg.startsWith('{"driver":"throttle"') && arg.includes('"throttle-group":"disks"')).length, 2)
})

await t.test('memory that is plugged in is a module beside the rest, in whole blocks, which the kernel is told to use', async (t) => {
  const plugged = line({ hotplugBytes: 2 ** 27 + 1 })
  for (const part of ['-m 301M,slots=1,maxmem=557M', '{"qom-type":"memory-backend-ram","id":"hotplug","size":268435456}', '-device pc-dimm,id=dimm,memdev=hotplug', ' memhp_default_state=online swiotlb=2048 ']) {
    t.ok(plugged.includes(part), part)
  }
  t.notMatch(line(), /slots|dimm|memhp|swiotlb/)
  t.equal(line({ hotplugBytes: 0 }), line())
})

await t.test('devices of the host stand at the end of the bus, whatever disks there are, and keep memory out of files', async (t) => {
  const devices = [{ sysfs: '/sys/bus/pci/devices/0000:01:00.0' }, { sysfs: '/sys/bus/mdev/devices/a,b' }]
  const found = buildArgs({ ...spec, devices }, options).filter((arg) => arg.startsWith('{"driver":"vfio-pci"')).map((arg) => JSON.parse(arg))
  t.same(found, devices.map(({ sysfs }, index) => ({ driver: 'vfio-pci', sysfsdev: sysfs, id: `host-${index}`, bus: 'pcie.0', addr: `0x${(30 - index).toString(16)}` })))
  t.throws(() => line({ devices, memory: { path: '/m', sharing: 'shared' } }), /cannot have its memory in a file/)
  t.throws(() => line({ devices: Array.from({ length: 23 }, () => ({ sysfs: '/sys/x' })) }), /2 disks and 23 devices of the host, and 23 fit/)
})

await t.test('KVM has no translation cache', async (t) => {
  t.ok(line({}, { accelerator: 'kvm' }).includes('-accel kvm -cpu'))
  t.notOk(line({}, { accelerator: 'kvm' }).includes('no_timer_check'), 'nor the kernel argument that only emulation needs')
  t.equal(defaultCpuModel('kvm'), 'host')
})

await t.test('a network device stands in its own slot, and its TAP is opened without a script', async (t) => {
  const built = line({ network: NETWORK })
  t.ok(built.includes('-netdev tap,id=network,ifname=bt1,script=no,downscript=no,vhost=off -device virtio-net-pci,queue_reset=off,guest_announce=off,netdev=network,id=nic,mac=02:00:00:0a:00:01,bus=pcie.0,addr=0x4,disable-legacy=on,romfile='), built)
  t.ok(line({ network: NETWORK }, { vhost: true }).includes('downscript=no,vhost=on'))
  t.notOk(line().includes('-netdev'))
  t.equal(built.replace(/ -netdev \S+ -device \S+/, ''), line(), 'nothing else changes')
})

await t.test('a balloon stands in its own slot, neither beside devices of the host, nor on private memory whose file could be cut', async (t) => {
  const built = line({ balloon: true })
  t.ok(built.includes('-device virtio-balloon-pci,id=balloon,free-page-reporting=on,deflate-on-oom=on,bus=pcie.0,addr=0x5,disable-legacy=on,romfile='), built)
  t.equal(built.replace(/ -device virtio-balloon\S+/, ''), line(), 'nothing else changes')
  t.notOk(line({ balloon: true, devices: [{ sysfs: '/sys/x' }] }).includes('balloon'))
  const onPrivate = { ...spec, balloon: true, memory: { path: '/m', sharing: 'private' } } as const
  t.throws(() => buildArgs(onPrivate, options, { readonlyPrivate: false }), /private memory's file/)
  t.match(buildArgs(onPrivate, options, { readonlyPrivate: true }).join(' '), /virtio-balloon/, 'a file that is only read cannot be cut')
})

await t.test('devices keep their slots, whatever else a VM has', async (t) => {
  const slots = (changes: Partial<VmSpec>): string[] => line(changes).match(/id=(ports|rng|blk-root)[^ ]*addr=0x[0-9a-f]+/g) ?? []
  t.equal(slots({}).length, 3)
  t.same(slots({ disks: spec.disks.slice(0, 1) }), slots({}))
})

await t.test('what cannot be built is refused with its reason', async (t) => {
  const disks = (count: number): VmSpec['disks'] => Array.from({ length: count }, (_, n) => ({ id: `volume-${n}`, path: '/v', readonly: false }))
  const cases: ReadonlyArray<readonly [Partial<VmSpec>, RegExp]> = [
    [{ vcpus: 0 }, /vcpus is 0/],
    [{ vcpus: 1.5 }, /vcpus is 1.5/],
    [{ memoryBytes: 1024 }, /memoryBytes is 1024/],
    [{ disks: disks(24) }, /24 disks and 0 devices of the host, and 23 fit/],
    [{ disks: [...disks(1), ...disks(1)] }, /two disks/],
    ...(['', 'a,b', 'a b', 'a/b', 'tap%d', '..', 'sixteen-letters-'] as const).map((tap) => [{ network: { ...NETWORK, tap } }, /network.tap is/] as const),
    ...(['', '02:00:00:0A:00:01', '03:00:00:00:00:01', '02:00:00:00:00:01,', '02:00:00:00:00'] as const).map((mac) => [{ network: { ...NETWORK, mac } }, /network.mac is/] as const),
    [{ network: { ...NETWORK, namespace: 'berth' } }, /network.namespace is "berth"/],
    [{ disks: [{ id: 'x,readonly=off', path: '/v', readonly: true }] }, /the id "x,readonly=off"/]
  ]
  for (const [changes, reason] of cases) t.throws(() => line(changes), reason)
  t.doesNotThrow(() => line({ disks: disks(23) }))
})

await t.test('disks that come and go are on a bus of their own, which is there without any', async (t) => {
  t.ok(line().includes('-device virtio-scsi-pci,id=volumes,num_queues=1,bus=pcie.0,addr=0x6,'))
  const disk = { id: 'volume-3', path: '/v/a,b.img', readonly: true, unit: 6 }
  const args = buildArgs({ ...spec, disks: [...spec.disks, disk] }, options)
  t.ok(args.includes('{"driver":"scsi-hd","bus":"volumes.0","channel":0,"scsi-id":0,"lun":6,"drive":"disk-volume-3","id":"blk-volume-3","serial":"volume-3"}'))
  t.ok(args.some((arg) => arg.includes('"node-name":"disk-volume-3","throttle-group":"disks","read-only":true') && arg.includes('"filename":"/v/a,b.img"')))
  t.ok(args.join(' ').includes('id=blk-volume-0,serial=volume-0,werror=stop,rerror=report,bus=pcie.0,addr=0x9,'), 'the others keep their slots')
  for (const unit of [-1, 64, 1.5]) t.throws(() => buildArgs({ ...spec, disks: [{ ...disk, unit }] }, options), /has the unit/)
  t.throws(() => buildArgs({ ...spec, disks: [disk, { ...disk, id: 'volume-4' }] }, options), /same unit/)
  const many = Array.from({ length: 64 }, (_, unit) => ({ id: `v-${unit}`, path: '/v', readonly: true, unit }))
  t.equal(buildArgs({ ...spec, disks: [...spec.disks, ...many] }, options).filter((arg) => arg.startsWith('{"driver":"scsi-hd"')).length, 64)
})
