// One life through the whole server, under KVM: run by main.ts on a host that has it. Its argument is the name of an image in the server's folder, `/run/data`.
import t, { type Test } from 'tap'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import { look, shell, startCounter, type Seen } from '../../helpers/counter.ts'
import { createShell, lines, waitFor } from '../../helpers/machine.ts'
import { startTestServer } from '../../helpers/server.ts'

const [, , image = ''] = process.argv
t.setTimeout(3_600_000)

// What is not tested here takes time all the same. An emulated host is slower than any that the defaults are for.
const off = { enabled: false }
const server = await startTestServer(t, {
  folder: '/run/data',
  readyTimeoutMs: 600_000,
  plugins: {
    builds: off, pushes: off, egress: off, ingress: off, ports: off, webhooks: off, devices: off,
    resources: {},
    guest: { config: { kernelHeaders: false, answerTimeout: '5m' } },
    instances: { config: { templates: { enabled: false } } },
    'hypervisor-qemu': { config: { accelerator: 'kvm', probeTimeout: '150s', launchTimeout: '2m', imageTimeout: '5m', heartbeatInterval: '5s', heartbeatDeadline: '1m' } }
  }
})
const fields = { skip_kernel_headers: true, overlay_size: '64MB' }
let before: Seen

const steps: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  'the server finds out that KVM works here, and says so': probe,
  'a machine is created cold, runs on kvm-clock, and its program prints': create,
  'commands run in it, with their exit codes, and files come to it': exec,
  'its memory goes to disk and comes back, and its clock is right': standby,
  'it is forked while it runs': fork,
  'a snapshot of it makes another machine': snapshot,
  'a volume comes to it while it runs': volume,
  'the server is killed, and the next one takes the machine over': adoption,
  'a program ends with its exit code': exit,
  'a machine has memory plugged in': hotplug
}
for (const [name, run] of Object.entries(steps)) await t.test(name, { timeout: 3_000_000 }, run)

async function probe (t: Test): Promise<void> {
  const { runtimes }: { runtimes: ReadonlyArray<{ name: string, available: boolean, acceleration: string, features: readonly string[] }> } = Object(await server.api.call('GET', '/capabilities'))
  const qemu = runtimes.find(({ name }) => name === 'qemu')
  t.match(qemu, { available: true, acceleration: 'kvm' })
  for (const feature of ['standby', 'fork', 'snapshots']) t.ok(qemu?.features.includes(feature), `${feature} was proven`)
}

async function create (t: Test): Promise<void> {
  await startCounter(server, image, 'traveller')
  t.equal((await shell(server, 'traveller', 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource')).trim(), 'kvm-clock')
  t.match(await shell(server, 'traveller', 'grep -m1 ^flags /proc/cpuinfo'), / hypervisor /)
  before = await look(server, 'traveller', 1)
  t.match(await lines(server, 'traveller'), [/^1 /, /^2 /])
}

async function exec (t: Test): Promise<void> {
  await t.rejects(shell(server, 'traveller', 'exit 7'), /exit code 7/)
  const here = t.testdir({ file: 'x'.repeat(100_000) })
  await cpToInstance({ baseURL: server.url, apiKey: server.key }, { instanceId: 'traveller', srcPath: `${here}/file`, dstPath: '/root/file' })
  t.equal(await shell(server, 'traveller', 'wc -c < /root/file'), '100000\n')
}

async function standby (t: Test): Promise<void> {
  for (const round of ['first', 'second']) {
    t.match(await server.sdk.instances.standby('traveller'), { state: 'Standby' }, `${round} standby`)
    t.match(await server.sdk.instances.restore('traveller'), { state: 'Running' })
    const after = await look(server, 'traveller', before.counter)
    t.equal(after.nonce, before.nonce, `${round} restore: the program goes on`)
    t.ok(after.counter > before.counter, 'and counts on')
    t.ok(after.clockError <= 2, `its clock is ${after.clockError} s off`)
    before = after
  }
}

async function fork (t: Test): Promise<void> {
  const twin = await server.sdk.instances.fork('traveller', { name: 'twin', from_running: true })
  const seen = await look(server, twin.id, before.counter)
  t.equal(seen.nonce, before.nonce, 'with its memory')
  t.not(seen.random, (await look(server, 'traveller')).random, 'and randomness of its own')
  t.ok(seen.clockError <= 2, `its clock is ${seen.clockError} s off`)
  await server.sdk.instances.delete(twin.id)
}

async function snapshot (t: Test): Promise<void> {
  const { id } = await server.sdk.instances.snapshots.create('traveller', { kind: 'Standby', name: 'moment' })
  const copy = await server.sdk.snapshots.fork(id, { name: 'copy', target_state: 'Running' })
  t.equal((await look(server, copy.id)).nonce, before.nonce)
  await server.sdk.instances.delete(copy.id)
  await server.sdk.snapshots.delete(id)
}

async function volume (t: Test): Promise<void> {
  const { id } = await server.sdk.volumes.create({ name: 'luggage', size_gb: 1 })
  await server.sdk.instances.volumes.attach(id, { id: 'traveller', mount_path: '/luggage' })
  t.equal(await shell(server, 'traveller', 'echo kept > /luggage/word; sync; cat /luggage/word'), 'kept\n')
  await server.sdk.instances.volumes.detach(id, { id: 'traveller' })
}

async function adoption (t: Test): Promise<void> {
  await server.kill9()
  await server.restart()
  t.match(await server.sdk.instances.get('traveller'), { state: 'Running' })
  const after = await look(server, 'traveller', before.counter)
  t.equal(after.nonce, before.nonce, 'the same program')
  t.ok(after.uptime > before.uptime, 'that never stopped')
  await server.sdk.instances.delete('traveller')
}

async function exit (t: Test): Promise<void> {
  const { id } = await createShell(server, image, 'echo last words; exit 3', fields)
  t.match(await waitFor(server, id, 'Stopped'), { exit_code: 3 })
  t.same(await lines(server, id), ['last words'])
  await server.sdk.instances.delete(id)
}

async function hotplug (t: Test): Promise<void> {
  const { id } = await createShell(server, image, 'sleep 100000', { ...fields, hotplug_size: '128MB' })
  await waitFor(server, id, 'Running')
  const kilobytes = Number(/^MemTotal: +(\d+)/m.exec(await shell(server, id, 'cat /proc/meminfo'))?.[1])
  t.ok(kilobytes > 200_000, `it has ${kilobytes} kB`)
  await server.sdk.instances.delete(id)
}
