// Machines with a network of their own: addresses that stay, copies that get others, nobody who reaches anybody, and nothing that is left.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { shell } from '../helpers/counter.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, lines, waitFor } from '../helpers/machine.ts'
import { figure } from '../helpers/metrics.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { eventually } from '../helpers/eventually.ts'

interface Place { readonly ip: string, readonly mac: string }

const commands = createHostCommands()
const { namespace, cidr } = ownNetwork()
const prefix = cidr.replace('.0/24', '')
const gateway = `${prefix}.1`
const networking = { config: { uplink: 'none', cidr, namespace } }

/** It prints numbers as quickly as it can, so that it shows each moment in which it runs. */
const COUNTING = 'echo first > /root/file; read nonce < /proc/sys/kernel/random/uuid; echo $nonce > /dev/shm/nonce; n=0; while true; do n=$((n+1)); echo $n; done'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  t.teardown(async () => {
    // Only after a failure: a server that stops in order removes it.
    if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace])
  })
  const server = await startTestServer(t, { plugins: { networking } })
  const image = await push(server, await busyboxImage(), 'network/busybox:latest')
  const tests = {
    'two machines reach the gateway\'s DNS and not each other, and the API tells what they have': apart,
    'address and MAC stay through stop, start, standby and restore, and a fork has its own': moves,
    'a restored machine may reset its network device': resets,
    'machines stay connected when the server is killed, and what is nobody\'s goes': outlives,
    'a machine made of a template or a spare VM has its own address, and without a network none': comesUp,
    'a fork that was kept ready is as any other, and until then neither its program nor its network has taken a step': keptReady
  }
  for (const [name, run] of Object.entries(tests)) await t.test(name, { timeout: 900_000 }, async (t) => { await run(t, server, image) })
}

async function apart (t: Test, server: TestServer, image: string): Promise<void> {
  const listening = 'nc -ll -p 7 -e /bin/cat & sleep 1000'
  const made = await Promise.all(['one', 'two'].map(async (name) => await createShell(server, image, listening, { name })))
  const [one, two] = await Promise.all(made.map(async ({ id }) => ({ id, ...await placeOf(t, server, id) })))
  if (one === undefined || two === undefined) throw new Error('two were made')
  t.not(one.ip, two.ip)
  t.not(one.mac, two.mac)
  t.equal(await taps(), 2)
  for (const { id, ip } of [one, two]) {
    t.ok(await reaches(server, id, gateway, 53), 'the DNS of the gateway')
    t.notOk(await reaches(server, id, gateway, 22), 'and nothing else of it')
    t.ok(await reaches(server, id, ip, 7), 'what listens is there')
    t.match(await shell(server, id, 'cat /etc/resolv.conf'), `nameserver ${gateway}`)
  }
  t.notOk(await reaches(server, one.id, two.ip, 7))
  t.notOk(await reaches(server, two.id, one.ip, 7))
  const { network_rx_bytes: received, network_tx_bytes: sent } = await server.sdk.instances.stats(one.id)
  t.ok(received > 0 && sent > 0, `${received} bytes in, ${sent} bytes out`)
  for (const { id } of [one, two]) await server.sdk.instances.delete(id)
  t.equal(await taps(), 0)
}

async function moves (t: Test, server: TestServer, image: string): Promise<void> {
  const { id } = await createShell(server, image, 'sleep 1000', { name: 'moving' })
  const before = await placeOf(t, server, id)
  await server.sdk.instances.stop(id)
  t.equal(await taps(), 0)
  await server.sdk.instances.start(id, {})
  t.same(await placeOf(t, server, id), before)
  t.ok(await reaches(server, id, gateway, 53))
  for (const round of [1, 2]) {
    await server.sdk.instances.standby(id)
    await untilUnplugged()
    await server.sdk.instances.restore(id)
    t.same(await placeOf(t, server, id), before, `after restore ${round}`)
    t.ok(await reaches(server, id, gateway, 53), 'it is connected at once')
  }
  const fork = await server.sdk.instances.fork(id, { name: 'fork', from_running: true })
  const place = await placeOf(t, server, fork.id)
  t.not(place.ip, before.ip)
  t.not(place.mac, before.mac)
  t.ok(await reaches(server, fork.id, gateway, 53), 'the fork is connected')
  t.ok(await reaches(server, id, gateway, 53), 'and so is its source')
  await server.sdk.instances.standby(fork.id)
  await server.sdk.instances.restore(fork.id)
  t.same(await placeOf(t, server, fork.id), place)
  t.ok(await reaches(server, fork.id, gateway, 53))
  for (const each of [id, fork.id]) await server.sdk.instances.delete(each)
  t.equal(await taps(), 0)
}

async function resets (t: Test, server: TestServer, image: string): Promise<void> {
  const { id } = await createShell(server, image, 'sleep 1000', { name: 'resetting' })
  await waitFor(server, id, 'Running')
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  const driver = '/sys/bus/virtio/drivers/virtio_net'
  t.equal(await shell(server, id, `cd ${driver} && for device in virtio*; do echo $device > unbind; echo $device > bind; done; ls /sys/class/net | grep -v lo | wc -l`), '1\n')
  t.match(await server.sdk.instances.get(id), { state: 'Running' })
  await server.sdk.instances.delete(id)
}

async function outlives (t: Test, server: TestServer, image: string): Promise<void> {
  const { id } = await createShell(server, image, `while true; do if nc -w 10 ${gateway} 53 < /dev/null; then echo connected; else echo lost; fi; sleep 0.3; done`, { name: 'steady' })
  const before = await placeOf(t, server, id)
  const resting = await createShell(server, image, 'sleep 1000', { name: 'resting' })
  await waitFor(server, resting.id, 'Running')
  await server.sdk.instances.standby(resting.id)
  await server.kill9()
  const seen = Date.now()
  await delay(2000)
  await server.restart()
  t.same(await placeOf(t, server, id), before)
  t.equal(await taps(), 1)
  await delay(1000)
  const said = await lines(server, id)
  t.ok(said.length > 5, `${said.length} connections, ${Date.now() - seen} ms after the kill`)
  t.notOk(said.includes('lost'))
  await server.sdk.instances.restore(resting.id)
  t.ok(await reaches(server, resting.id, gateway, 53))
  for (const each of [id, resting.id]) await server.sdk.instances.delete(each)
  t.equal(await taps(), 0)
}

async function comesUp (t: Test, server: TestServer, image: string): Promise<void> {
  await server.stop()
  await server.restart({ plugins: { networking, instances: { config: { templates: { enabled: true, spares: 1, quiet: '100ms' } } } } })
  const first = await createShell(server, image, 'sleep 1000', { name: 'first' })
  await placeOf(t, server, first.id)
  await eventually('a spare VM is made', async () => await figure(server, 'berth_instances_spares') === 1)
  t.equal(await taps(), 2, 'a spare VM is connected')
  const made = [await createShell(server, image, 'sleep 1000', { name: 'spare' }), await createShell(server, image, 'sleep 1000', { name: 'limited', network: { bandwidth_upload: '1MB/s' } })]
  const ways = await Promise.all(made.map(async ({ id }) => (await lines(server, id, { source: 'hypeman' })).join('\n')))
  t.match(ways[0], 'create: from a spare VM')
  t.match(ways[1], 'create: from a template')
  const places = []
  for (const { id } of made) {
    places.push(await placeOf(t, server, id))
    t.ok(await reaches(server, id, gateway, 53))
  }
  t.not(places[0]?.ip, places[1]?.ip)
  const alone = await createShell(server, image, 'sleep 1000', { name: 'alone', network: { enabled: false } })
  await waitFor(server, alone.id, 'Running')
  t.equal((await shell(server, alone.id, 'ls /sys/class/net')).trim(), 'lo')
  for (const { id } of [first, ...made, alone]) await server.sdk.instances.delete(id)
  await server.stop()
  t.notOk(existsSync(`/run/netns/${namespace}`), 'a server that stops in order leaves no network')
  await server.restart()
}

async function keptReady (t: Test, server: TestServer, image: string): Promise<void> {
  await server.stop()
  await server.restart({ plugins: { networking, instances: { config: { templates: { enabled: true, spares: 1, quiet: '100ms' } } } } })
  const { id: original } = await createShell(server, image, COUNTING, { name: 'original' })
  const old = await placeOf(t, server, original)
  const before = await factsOf(server, original)
  const snapshot = await server.sdk.instances.snapshots.create(original, { kind: 'Standby' })
  await server.sdk.instances.delete(original)
  const cold = await server.sdk.snapshots.fork(snapshot.id, { name: 'cold' })
  await eventually('a fork and a VM of the template are kept ready', async () => await figure(server, 'berth_instances_spares') === 2)
  const [closed = '', ...others] = await closedTaps()
  t.strictSame(others, [], 'the fork is cut off from the network')
  t.equal((await commands.run('ip', ['netns', 'exec', namespace, 'cat', `/sys/class/net/${closed}/statistics/rx_packets`])).stdout.trim(), '0', 'nothing has come from it')
  const listed = new Set((await server.sdk.instances.list()).map(({ id }) => id))
  const hidden = (await readdir(join(server.dataDir, 'instances'))).filter((name) => !listed.has(name))
  t.equal(hidden.length, 2)
  for (const name of hidden) t.equal((await stat(join(server.dataDir, 'instances', name, 'output.log'))).size, 0, 'its program has said nothing')
  const warm = await server.sdk.snapshots.fork(snapshot.id, { name: 'warm' })
  t.match((await lines(server, warm.id, { source: 'hypeman' })).join('\n'), 'fork: from a spare VM')
  t.ok(hidden.includes(warm.id))
  const places = [await placeOf(t, server, cold.id), await placeOf(t, server, warm.id)]
  t.equal(new Set([old, ...places].map(({ mac }) => mac)).size, 3)
  t.not(places[0]?.ip, places[1]?.ip)
  t.ok(await reaches(server, warm.id, gateway, 53))
  const facts = await Promise.all([cold, warm].map(async ({ id }) => await factsOf(server, id)))
  t.strictSame(facts.map(({ hostname }) => hostname), ['cold', 'warm'])
  for (const { nonce, file, clockError } of facts) t.match({ nonce, file, clock: clockError <= 1 }, { nonce: before.nonce, file: 'first', clock: true }, 'memory, disk and clock')
  for (const own of ['bootId', 'machineId', 'random'] as const) t.equal(new Set([before, ...facts].map((each) => each[own])).size, 3, own)
  const [first, second] = await Promise.all([cold, warm].map(async ({ id }) => /\d+\n(\d+)\n/.exec(await readFile(join(server.dataDir, 'instances', id, 'output.log'), 'utf8'))?.[1]))
  t.equal(first, second, 'the program of both goes on with the number after that of the snapshot')
  t.match(await server.sdk.instances.standby(warm.id), { state: 'Standby' })
  t.match(await server.sdk.instances.restore(warm.id), { state: 'Running' })
  t.match(await factsOf(server, warm.id), { hostname: 'warm', nonce: before.nonce, file: 'first', bootId: facts[1]?.bootId, machineId: facts[1]?.machineId }, 'it sleeps and wakes like any other')
  await eventually('another fork is kept ready', async () => (await closedTaps()).length === 1)
  await server.kill9()
  await server.restart()
  t.strictSame(await closedTaps(), [], 'a crash of the server leaves nothing of it')
  t.strictSame((await readdir(join(server.dataDir, 'instances'))).sort(), [cold.id, warm.id].sort())
  await server.sdk.snapshots.fork(snapshot.id, { name: 'later' })
  await eventually('the next server keeps another one ready', async () => (await closedTaps()).length === 1)
  await server.sdk.snapshots.delete(snapshot.id)
  await eventually('it ends with the snapshot', async () => (await closedTaps()).length === 0)
  for (const { id } of await server.sdk.instances.list()) await server.sdk.instances.delete(id)
  await server.stop()
  await server.restart()
}

interface Facts { readonly hostname: string, readonly nonce: string, readonly file: string, readonly bootId: string, readonly machineId: string, readonly random: string, readonly clockError: number }

async function factsOf (server: TestServer, id: string): Promise<Facts> {
  const asked = Date.now() / 1000
  const [hostname = '', nonce = '', file = '', bootId = '', machineId = '', random = '', clock = ''] = (await shell(server, id, 'hostname; cat /dev/shm/nonce /root/file /proc/sys/kernel/random/boot_id /etc/machine-id; head -c 16 /dev/random | md5sum; date +%s')).split('\n')
  return { hostname, nonce, file, bootId, machineId, random, clockError: Math.max(Math.floor(asked) - Number(clock), Number(clock) - Math.ceil(Date.now() / 1000), 0) }
}

/** TAPs through which nothing passes. */
async function closedTaps (): Promise<string[]> {
  const { stdout } = await commands.run('ip', ['-n', namespace, '-o', 'link', 'show', 'type', 'tun'])
  return stdout.split('\n').filter((line) => line !== '' && !/<[^>]*\bUP\b/.test(line)).map((line) => /^\d+: ([^:@]+)/.exec(line)?.[1] ?? '')
}

async function taps (): Promise<number> {
  if (!existsSync(`/run/netns/${namespace}`)) return 0
  return (await commands.run('ip', ['-n', namespace, '-o', 'link', 'show', 'type', 'tun'])).stdout.split('\n').filter((line) => line !== '').length
}

/** In standby a machine has no TAP, but the answer does not wait for that: it goes behind it, of which nothing tells. */
async function untilUnplugged (): Promise<void> {
  await eventually('the TAP of a machine in standby is gone', async () => await taps() === 0)
}

/** Whether a TCP connection comes about, seen from inside the machine. */
async function reaches (server: TestServer, id: string, ip: string, port: number): Promise<boolean> {
  return (await shell(server, id, `if nc -w 10 ${ip} ${port} < /dev/null > /dev/null 2>&1; then echo yes; else echo no; fi`)).trim() === 'yes'
}

/** What the API says of a machine's place in the network, after the guest has agreed. */
async function placeOf (t: Test, server: TestServer, id: string): Promise<Place> {
  const { network } = await waitFor(server, id, 'Running')
  const { ip, mac } = network ?? {}
  if (network?.enabled !== true || typeof ip !== 'string' || typeof mac !== 'string') throw new Error(`the instance has no network: ${JSON.stringify(network)}`)
  t.ok(ip.startsWith(`${prefix}.`))
  t.match(await shell(server, id, 'ip -4 -o addr show'), ` ${ip}/24 `, 'the guest has the address')
  t.equal((await shell(server, id, 'cat /sys/class/net/e*/address')).trim(), mac, 'and the MAC')
  return { ip, mac }
}
