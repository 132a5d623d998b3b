// Names for guests: answered at the gateway, with or without a server, by exactly one forwarder.
import { chmod, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Networking } from '../../../plugins/networking/service.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createWorld, skipReason, type Machine, type World } from './world.ts'

const skip = skipReason()
const ANSWER = '203.0.113.7'

async function setScene (t: Test): Promise<{ world: World, network: Networking, guest: Machine, open: () => Promise<Networking>, forwarders: () => Promise<string[]> }> {
  const world = await createWorld(t)
  await world.addOutside()
  const server = await world.addDns()
  const open = async (): Promise<Networking> => await world.open({ uplink: 'auto', dns: { servers: [server] } })
  const network = await open()
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'http_https_only'), address)
  const forwarders = async (): Promise<string[]> => {
    const pids = (await world.ip('netns', 'pids', world.namespace)).split('\n').filter((pid) => pid !== '')
    const named = await Promise.all(pids.map(async (pid) => /^dnsmasq .*--listen-address=10\.100\.0\.1 /.test((await world.real.run('ps', ['-ww', '-o', 'args=', '-p', pid])).stdout) ? [pid] : []))
    return named.flat()
  }
  return { world, network, guest, open, forwarders }
}

const ask = async (guest: Machine, timeoutMs?: number): Promise<string> => await guest.ask({ do: 'resolve', server: guest.address.gateway, name: 'example.test', ...timeoutMs === undefined ? {} : { timeoutMs } })

t.test('the forwarder goes on without the server, and the next server takes it over', { skip }, async (t) => {
  const { world, network, guest, open, forwarders } = await setScene(t)
  t.equal(await ask(guest), ANSWER)
  const before = await forwarders()
  t.equal(before.length, 1)
  await world.abandon(network)
  t.equal(await ask(guest), ANSWER, 'without a server')
  await open()
  t.same(await forwarders(), before)
  t.equal(await ask(guest), ANSWER)
})

t.test('it runs as nobody, and is started again when it has ended', { skip }, async (t) => {
  const { world, guest, forwarders } = await setScene(t)
  t.equal(await ask(guest), ANSWER)
  const [pid = ''] = await forwarders()
  t.equal((await world.real.run('ps', ['-o', 'user=', '-p', pid])).stdout.trim(), 'nobody')
  process.kill(Number(pid), 'SIGKILL')
  // The plugin looks every 5 s.
  for (let attempt = 0; (await ask(guest, 2000)) !== ANSWER; attempt++) {
    if (attempt > 60) throw new Error('it was not started again')
    await delay(250)
  }
  t.equal((await forwarders()).length, 1)
})

/** How many records there are in the answer to a question that Node's resolver does not know. */
const QUESTION = `
  const [server, name, type] = process.argv.slice(1)
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  const socket = require('dgram').createSocket('udp4')
  socket.on('message', (text) => { console.log(text.readUInt16BE(6)); process.exit() })
  socket.send(Buffer.concat([Buffer.from('00010100000100000000000000', 'hex').subarray(0, 12), ...labels, Buffer.from([0, 0, Number(type), 0, 1])]), 53, server)
  setTimeout(() => { console.log('silence'); process.exit() }, 2000)`

t.test('nobody is told of encrypted server names or of HTTP/3', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const server = await world.addDns(['--dns-rr=h3.test,65,000100', '--dns-rr=h3.test,64,000100', '--txt-record=h3.test,text'])
  const network = await world.open({ uplink: 'auto', dns: { servers: [server] } })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'http_https_only'), address)
  t.equal(await ask(guest), ANSWER)
  const records = async (from: string, of: string, type: number): Promise<string> => (await world.in(from, process.execPath, '-e', QUESTION, of, 'h3.test', String(type))).trim()
  for (const type of [64, 65]) {
    t.equal(await records(world.outside, server, type), '1', 'there is one')
    t.equal(await records(guest.namespace, address.gateway, type), '0', 'that no guest hears of')
  }
  t.equal(await records(guest.namespace, address.gateway, 16), '1', 'others come through')
})

t.test('its log is bounded while it runs', { skip }, async (t) => {
  const { world, guest } = await setScene(t)
  t.equal(await ask(guest), ANSWER)
  const log = join(world.folder, 'networking/dns.log')
  await writeFile(log, 'x'.repeat(2 ** 20 + 1))
  await eventually('it is cut', async () => (await stat(log)).size < 2 ** 20, { limitMs: 30_000 })
  t.equal((await stat(`${log}.1`)).size, 2 ** 20 + 1)
})

t.test('one with another configuration is replaced', { skip }, async (t) => {
  const { world, network, guest, forwarders } = await setScene(t)
  t.equal(await ask(guest), ANSWER)
  const before = await forwarders()
  await world.abandon(network)
  await world.open({ uplink: 'auto', dns: { servers: ['198.51.100.2#5300'] } })
  // It is nsenter for a moment before it is dnsmasq.
  let after = await forwarders()
  for (let attempt = 0; attempt < 200 && after.length === 0; attempt++) {
    await delay(50)
    after = await forwarders()
  }
  t.equal(after.length, 1)
  t.not(after[0], before[0])
})

t.test('name servers of the host that come late, or move to another file, are the guests\', too', { skip }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const server = await world.addDns()
  const [first, second] = [join(world.folder, 'resolv.conf'), join(world.folder, 'other.conf')]
  world.resolverFiles = [first, second]
  // dnsmasq reads them as nobody.
  await chmod(world.folder, 0o755)
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('a')
  const guest = await world.machine(await network.plug('a', undefined, { vcpus: 1 }, 'http_https_only'), address)
  t.not(await ask(guest, 2000), ANSWER, 'the host names none yet')
  // The plugin looks every 5 s.
  const answers = async (): Promise<void> => { await eventually('an answer', async () => await ask(guest, 2000) === ANSWER, { limitMs: 30_000 }) }
  await writeFile(first, `nameserver ${server}\n`)
  await answers()
  await writeFile(second, `nameserver ${server}\n`)
  await writeFile(first, 'nameserver 127.0.0.53\n')
  await eventually('the other file is read', async () => {
    const pids = (await world.ip('netns', 'pids', world.namespace)).split('\n').filter((pid) => pid !== '')
    const { stdout } = await world.real.run('ps', ['-ww', '-o', 'args=', '-p', pids.join()]).catch(() => ({ stdout: '' }))
    return stdout.split('\n').some((line) => /^dnsmasq .*--listen-address=10\.100\.0\.1 /.test(line) && line.endsWith(`--resolv-file=${second}`))
  }, { limitMs: 30_000 })
  await answers()
})
