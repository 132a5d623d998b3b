// What vfkit is asked for, and what it is not: each trap of vfkit has a test here. All of it is against a double; vfkit itself runs on macOS alone.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import type { RestClient } from '../../../core/library/vmm/rest-client.ts'
import { connectAgent } from '../../../plugins/hypervisor-vz/agent.ts'
import { createVzDriver } from '../../../plugins/hypervisor-vz/driver.ts'
import { AGENT_SOCKET } from '../../../plugins/hypervisor-vz/names.ts'
import { placeOf } from '../../../plugins/hypervisor-vz/place.ts'
import { checkPlace, checkSpec, vfkitArguments } from '../../../plugins/hypervisor-vz/spec.ts'
import { askState } from '../../../plugins/hypervisor-vz/vm.ts'
import { testFolder } from '../../helpers/folder.ts'
import { judge } from '../../vmm-double/rules.ts'
import { doubleProgram } from '../../vmm-double/program.ts'
import { VFKIT_RULES } from '../../vmm-double/vfkit-rules.ts'
import { commands } from '../hypervisor-qemu/machine.ts'
import { config } from './machine.ts'

const AT = '/data/hypervisor-vz/0123456789abcdef'
const spec: VmSpec = {
  id: 'x',
  directory: '/vms/x',
  vcpus: 2,
  memoryBytes: 2 ** 27 + 1,
  kernel: { path: '/k', initrd: '/i', arguments: ['quiet'] },
  disks: [{ id: 'root', path: '/images/a, b', readonly: true }, { id: 'overlay', path: '/vms/x/overlay', readonly: false }],
  files: { vmm: '/v', output: '/o', report: '/r' }
}
const args = vfkitArguments(spec, AT)
const devices = args.filter((_, index) => args[index - 1] === '--device')
const valueOf = (name: string): string | undefined => args[args.indexOf(name) + 1]

const driverOn = (platform: NodeJS.Platform, binary: string, folder: string) => createVzDriver({ ...config, binary }, {
  commands, folder, platform, guest: { system: async () => ({ kernel: binary, initrd: binary, version: 'x' }) }, onError: (error) => { throw error }
})

await t.test('on any other system it is unsupported, in one sentence, and nothing is started', async (t) => {
  const driver = driverOn('linux', '/no/vfkit', '/no/folder')
  t.same(await driver.probe(), { supported: false, reason: 'vz is a part of macOS, and this host is not one' })
  await t.rejects(driver.launch(spec), { code: 'vm_launch_failed', message: /macOS/ })
  t.equal(driver.imaging, undefined, 'standby, restore and fork are not among what it has')
})

await t.test('on macOS it is supported once the guests\' kernel has booted, and a program that is missing or old is named', async (t) => {
  const folder = testFolder(t)
  for (const [version, wanted] of [['0.6.4', { supported: true, version: '0.6.4', acceleration: 'hvf' }], ['0.5.1', { supported: false, reason: /0\.5\.1 is older than 0\.6\.0/ }]] as const) {
    const double = await doubleProgram('vfkit', { BERTH_DOUBLE_VERSION: version })
    t.teardown(() => double.remove())
    t.match(await driverOn('darwin', double.path, folder).probe(), wanted)
  }
  t.match(await driverOn('darwin', '/no/vfkit', folder).probe(), { supported: false, reason: /\/no\/vfkit/ })
  const text = join(folder, 'text')
  await writeFile(text, '#!/bin/sh\necho something\n', { mode: 0o755 })
  t.match(await driverOn('darwin', text, folder).probe(), { supported: false, reason: /does not say which version/ })
})

await t.test('each request is one that vfkit has', async (t) => {
  const asked: Array<Parameters<RestClient['ask']>> = []
  const answering = (answer: unknown): RestClient => ({ ask: async (...request) => { asked.push(request); return await Promise.resolve(answer) } })
  for (const [answer, state] of [
    [{ state: 'VirtualMachineStateRunning' }, { status: 'running' }], [{ state: 'VirtualMachineStatePaused' }, { status: 'paused' }], [{ state: 'VirtualMachineStateStarting' }, undefined], [undefined, undefined]
  ] as const) t.same(await askState(answering(answer)), state, JSON.stringify(answer))
  t.equal(asked.length, 4)
  for (const [method, path, body] of asked) t.notMatch(judge(VFKIT_RULES, 'started', method, path, body === undefined ? '' : JSON.stringify(body)), { why: String }, `${method} ${path}`)
})

await t.test('trap, vsock: one device for each port; the host calls the agent, and the guest calls for output and report', async (t) => {
  t.same(devices.filter((device) => device.startsWith('virtio-vsock')), [
    `virtio-vsock,port=1024,socketURL=${AT}/agent.sock,connect`, `virtio-vsock,port=1025,socketURL=${AT}/vsock_1025,listen`, `virtio-vsock,port=1026,socketURL=${AT}/vsock_1026,listen`
  ])
  t.equal(valueOf('--kernel-cmdline'), 'quiet berth.ports=vsock')
})

await t.test('trap, no word on the way: vfkit takes a connection that no guest does, and only an answer tells', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'vz-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const heard: Buffer[] = []
  let how: 'end' | 'silence' | 'answer' = 'end'
  const server = createServer((socket) => {
    socket.on('error', () => {})
    if (how === 'end') socket.end()
    socket.on('data', (chunk) => {
      heard.push(chunk)
      if (how === 'answer') socket.write(chunk)
    })
  })
  await new Promise<void>((resolve) => { server.listen(join(folder, AGENT_SOCKET), resolve) })
  t.teardown(() => { server.close() })
  await t.rejects(connectAgent(folder, 5000), { code: 'guest_unreachable' }, 'nobody listens in the guest')
  how = 'silence'
  await t.rejects(connectAgent(folder, 50), { code: 'guest_unreachable' }, 'the guest is not up')
  how = 'answer'
  const socket = await connectAgent(folder, 5000)
  t.equal(Buffer.concat(heard).toString('latin1').includes('CONNECT'), false)
  t.ok(socket.readableLength > 0)
  socket.destroy()
})

await t.test('trap, socket path length: sockets have short and whole paths, wherever the VM is; a folder too deep for that is refused', async (t) => {
  t.equal(valueOf('--restful-uri'), `unix://${AT}/api.sock`)
  checkPlace(AT)
  for (const at of [`/${'d'.repeat(100)}`, '/a folder', '/a,b', '/a?b', '/ä']) t.throws(() => checkPlace(at), { code: 'vm_spec_invalid' }, at)
  const folder = testFolder(t)
  const directory = join(folder, 'with a space, and a comma', 'd'.repeat(120))
  await mkdir(directory, { recursive: true })
  const links = await mkdtemp(join(tmpdir(), 'vz-'))
  t.teardown(() => rm(links, { recursive: true }))
  const place = placeOf(directory, links)
  await place.make(undefined)
  await writeFile(join(place.at, 'x'), '')
  t.same(await readdir(place.path), ['x'], 'the same folder')
  place.remove()
  t.same([...await readdir(links), ...await readdir(directory)], [], 'nothing is left')
})

await t.test('trap, commas: no path of a caller\'s is in an option', async (t) => {
  t.same(devices.filter((device) => device.startsWith('virtio-blk')), [`virtio-blk,path=${AT}/disk-root,deviceId=root,readonly`, `virtio-blk,path=${AT}/disk-overlay,deviceId=overlay`])
  t.same([valueOf('--kernel'), valueOf('--initrd')], [`${AT}/kernel`, `${AT}/initrd`])
})

await t.test('trap, the console\'s file is emptied at each start: it is vfkit\'s own output, which is appended to the VM\'s', async (t) => {
  t.ok(devices.includes('virtio-serial,logFilePath=/dev/fd/1'))
})

await t.test('memory is in whole MiB', async (t) => {
  t.same([valueOf('--memory'), valueOf('--cpus')], ['129', '2'])
})

await t.test('what it cannot do is 501 with its name', async (t) => {
  const cases: ReadonlyArray<Partial<VmSpec>> = [
    { hotplugBytes: 1 }, { diskBytesPerSecond: 1 }, { devices: [{ sysfs: '/sys/x' }] }, { disks: [{ id: 'a', path: '/a', readonly: false, unit: 0 }] }, { network: { namespace: '/run/netns/x', tap: 'tap1', mac: '02:00:00:00:00:01' } }
  ]
  for (const changed of cases) t.throws(() => checkSpec({ ...spec, ...changed }), { code: 'not_supported', statusCode: 501, message: /vz/ })
  for (const changed of [{ vcpus: 0 }, { memoryBytes: 1 }, { disks: [{ id: 'A', path: '/a', readonly: true }] }]) t.throws(() => checkSpec({ ...spec, ...changed }), { code: 'vm_spec_invalid' })
})
