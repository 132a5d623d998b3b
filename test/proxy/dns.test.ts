import t from 'tap'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { loopback } from './helpers/network.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

function resolver (stage: Awaited<ReturnType<typeof setStage>>, from: string, timeout = 10_000): Resolver {
  const asks = new Resolver({ timeout, tries: 1 })
  asks.setServers([`${stage.proxy.address}:${stage.proxy.ports.dns}`])
  asks.setLocalAddress(from)
  return asks
}

t.test('A25 and A31: guests in mode all get made-up addresses, nothing is asked anywhere, and no type but A has an answer', async (t) => {
  const stage = await setStage(t)
  const dns = resolver(stage, stage.guest)
  const first = await dns.resolve4('secret-data-in-a-name.attacker.test', { ttl: true })
  t.match(first, [{ address: /^198\.1[89]\./, ttl: 60 }])
  t.same(await dns.resolve4('SECRET-data-in-a-name.attacker.test', { ttl: true }), first, 'the same name, the same address')
  t.not((await dns.resolve4('another.test'))[0], first[0]?.address)
  for (const type of ['AAAA', 'TXT', 'MX', 'SRV', 'CNAME', 'NS', 'SOA', 'CAA'] as const) await t.rejects(dns.resolve('name.test', type), { code: 'ENODATA' }, type)
  for (const name of ['localhost', 'a.localhost', '1.2.3.4.in-addr.arpa', 'bad_name.test']) await t.rejects(dns.resolve4(name), { code: 'ENOTFOUND' }, name)
  t.same(stage.names.asked, [], 'the host\'s resolver has heard nothing')
})

t.test('A31: HTTPS and SVCB records, which would offer HTTP/3 and hidden names, are empty', async (t) => {
  const stage = await setStage(t)
  for (const type of [64, 65, 255]) {
    const answer = await overUdp(stage, stage.guest, query('name.test', type))
    t.equal(answer.readUInt16BE(6), 0, `type ${type}`)
    t.equal(answer.readUInt16BE(2) & 15, 0)
  }
})

t.test('DNS works over TCP, and what is no query gets no answer', async (t) => {
  const stage = await setStage(t)
  const socket = connect({ host: stage.proxy.address, port: stage.proxy.ports.dns, localAddress: stage.guest })
  const body = query('name.test', 1)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(body.length)
  socket.write(Buffer.concat([length, body.subarray(0, 5)]))
  socket.write(Buffer.concat([body.subarray(5), length, body]))
  let received = Buffer.alloc(0)
  while (received.length < 2 * (body.length + 18)) received = Buffer.concat([received, (await once(socket, 'data'))[0]])
  t.equal(received.readUInt16BE(2 + 6), 1)
  socket.write(Buffer.from([0, 3, 1, 2, 3]))
  await once(socket, 'close')
  for (const bad of [Buffer.concat([body.subarray(0, 12), Buffer.from([0xc0, 0x0c, 0, 1, 0, 1])]), Buffer.concat([body.subarray(0, 12), Buffer.alloc(300, 63)]), body.subarray(0, 14)]) {
    t.equal((await overUdp(stage, stage.guest, bad)).readUInt16BE(2) & 15, 1)
  }
})

t.test('a guest that asks over TCP and reads no answer is held up, and nothing is kept for it', async (t) => {
  const stage = await setStage(t, { limits: { dnsPerSecond: 10_000_000 } })
  const socket = connect({ host: stage.proxy.address, port: stage.proxy.ports.dns, localAddress: stage.guest })
  t.teardown(() => socket.destroy())
  const body = query(new Array<string>(4).fill('x'.repeat(60)).join('.'), 1)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(body.length)
  const many = Buffer.concat(new Array<Buffer>(1000).fill(Buffer.concat([length, body])))
  // More than the kernel keeps for both directions of a connection.
  const most = 20 * 1024 * 1024
  let taken = 0
  let isHeldUp = false
  while (taken < most && !isHeldUp) {
    const signal = AbortSignal.timeout(8000)
    if (!socket.write(many)) await once(socket, 'drain', { signal }).catch(() => { isHeldUp = true })
    taken += many.length
  }
  t.ok(isHeldUp, `${taken} bytes were taken`)
})

t.test('only VMs in mode all are answered', async (t) => {
  const stage = await setStage(t)
  const open = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest), vmPolicy(open, [], { mode: 'http_https_only' }))
  await t.resolves(resolver(stage, stage.guest).resolve4('a.test'))
  await t.rejects(resolver(stage, open, 500).resolve4('a.test'))
  await t.rejects(resolver(stage, loopback(12), 500).resolve4('a.test'))
})

t.test('A32: a burst of queries beyond the limit is dropped, and the log says so once a second', async (t) => {
  const stage = await setStage(t, { limits: { dnsPerSecond: 20 } })
  const socket = createSocket('udp4')
  socket.bind(0, stage.guest)
  await once(socket, 'listening')
  let answers = 0
  socket.on('message', () => answers++)
  for (let count = 0; count < 200; count++) socket.send(query(`x${count}.test`, 1), stage.proxy.ports.dns, stage.proxy.address)
  await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.some(entry => entry.reason === 'dns_limited'))
  t.ok(answers <= 40, `${answers}`)
  t.ok((await stage.proxy.audit(`vm-${stage.guest}`)).length <= 3)
  socket.close()
})

function query (name: string, type: number): Buffer {
  const labels = name.split('.').flatMap(label => [Buffer.from([label.length]), Buffer.from(label)])
  return Buffer.concat([Buffer.from([0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...labels, Buffer.from([0, 0, type, 0, 1])])
}

async function overUdp (stage: Awaited<ReturnType<typeof setStage>>, from: string, bytes: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4')
  socket.bind(0, from)
  await once(socket, 'listening')
  socket.send(bytes, stage.proxy.ports.dns, stage.proxy.address)
  const [answer] = await once(socket, 'message')
  socket.close()
  return answer
}
