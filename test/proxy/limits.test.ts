import t from 'tap'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { eventually } from '../helpers/eventually.ts'
import { ask, closesWithin, exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { startRawOrigin } from './helpers/raw-origin.ts'
import { setStage, type Stage } from './helpers/setup.ts'
import { workerOf } from './helpers/workers.ts'

const HOST = 'api.good.test'
const alive = async (stage: Stage, from = stage.guest) => (await ask(stage.proxy, from, { name: HOST, headers: { host: stage.host(HOST) } })).status

t.test('A54: half a handshake, no handshake, and a header byte by byte are ended in time', async (t) => {
  const stage = await setStage(t, { limits: { handshakeMs: 3000, headerMs: 3000 } })
  await stage.origin(100)
  const hello = await clientHello(HOST)
  const silent = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
  const half = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
  const slow = await openTls(stage.proxy, stage.guest, HOST)
  const plain = await openPlain(stage.proxy, stage.guest)
  const second = await openTls(stage.proxy, stage.guest, HOST)
  const line = `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n`
  await exchangeBytes(second, `${line}\r\n`, text => text.includes('origin'))
  let at = 0
  const drip = setInterval(() => {
    at++
    half.write(hello.subarray(at - 1, at))
    for (const socket of [slow, plain, second]) if (socket.writable) socket.write(line[at - 1] ?? 'x')
  }, 200)
  const ended = await Promise.all([silent, half, slow, plain, second].map(async socket => await closesWithin(socket, 20_000)))
  clearInterval(drip)
  t.same(ended, [true, true, true, true, true])
  t.equal(await alive(stage), 200)
})

t.test('A54: a body of announced length that trickles is given up, and so is a request whose origin is silent', async (t) => {
  const stage = await setStage(t, { limits: { bodyGraceMs: 600, bodyBytesPerSecond: 1000, idleMs: 1500 } })
  let silent = false
  const origin = await stage.origin(100, {
    streaming: (seen, response) => {
      silent = seen.url === '/silent'
      seen.resume()
      if (!silent) seen.on('end', () => response.end())
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, HOST)
  const drip = setInterval(() => { if (socket.writable) socket.write('x') }, 200)
  t.match(await exchangeBytes(socket, `POST /slow HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\nContent-Length: 1000\r\n\r\n`), /^HTTP\/1\.1 408 [^]*slow_body/)
  clearInterval(drip)
  t.match(await ask(stage.proxy, stage.guest, { name: HOST, path: '/silent', headers: { host: stage.host(HOST) } }), { status: 504, text: /upstream_timeout/ })
  t.equal(origin.seen.length, 2)
})

t.test('A55: names without end make no more certificates than allowed, and cost another VM nothing', async (t) => {
  const stage = await setStage(t, { limits: { newNamesPerSecond: 2, certificatesPerVm: 1 } })
  await stage.origin(100)
  const other = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest, [{}]), vmPolicy(other, [{}]))
  t.equal(await alive(stage, other), 200)
  const ca = await stage.proxy.ca()
  const began = performance.now()
  const results = await Promise.all(Array.from({ length: 100 }, async (_, index) => {
    try {
      (await openTls(stage.proxy, stage.guest, `name-${index}.test`, { ca })).destroy()
      return true
    } catch (error) {
      if (!(error instanceof Error)) throw error
      return false
    }
  }))
  const made = results.filter(Boolean).length
  const seconds = (performance.now() - began) / 1000
  t.ok(made >= 2 && made <= 2 + 2 * seconds + 1, `${made} handshakes in ${seconds} s`)
  const metrics = (await stage.proxy.call('GET', '/metrics')).body
  t.ok(Number(/^berth_egress_ready_certificates (\d+)/m.exec(metrics)?.[1]) <= 2)
  t.match(metrics, /refusals_total\{reason="too_many_names"\}/)
  t.equal(await alive(stage, other), 200)
})

t.test('A56 and P18: a handshake without a name, or with one that is none, ends in an alert and a line in the log', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100)
  const hello = await clientHello('aaaaaaaaaaaa.test')
  const names = ['aaaaaaaaaaa..test', 'aaaaaaaaaa\0.test', '123.123.123.123\0\0', 'aaaaaaaa\xff\xfe\xfd.test', '*aaaaaaaaaaa.test', 'aaaaaaa/../x.test', '                 ']
  for (const name of names) {
    const bytes = Buffer.from(hello)
    bytes.write(name.padEnd(17, '.').slice(0, 17), bytes.indexOf('aaaaaaaaaaaa.test'), 'latin1')
    const socket = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
    const answer = await exchangeBytes(socket, bytes.toString('latin1'))
    t.ok(answer === '' || answer.startsWith('\x15\x03'), JSON.stringify(name))
  }
  const nameless = connectTls({ socket: await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https), servername: '', rejectUnauthorized: false })
  const [error] = await once(nameless, 'error')
  t.match(error.code, /ALERT_HANDSHAKE_FAILURE/)
  const entries = await stage.proxy.audited(`vm-${stage.guest}`, found => found.length > names.length)
  t.ok(entries.every(entry => entry.protocol === 'tls'))
  t.ok(entries.some(entry => entry.reason === 'no_server_name'))
  t.ok(entries.filter(entry => entry.reason === 'bad_server_name').length >= 4)
  t.equal(await alive(stage), 200)
})

t.test('A58: connections and requests beyond the limits of a VM are refused, and another VM is served', async (t) => {
  const stage = await setStage(t, { limits: { connections: 20, requests: 5 } })
  let hold = true
  await stage.origin(100, { answer: (_seen, response) => { if (!hold) response.end('x') } })
  const other = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest, [{}]), vmPolicy(other, [{}]))
  await workerOf(stage.proxy, stage.guest)
  const sockets = await Promise.all(Array.from({ length: 30 }, async () => await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)))
  for (const socket of sockets) socket.resume()
  const closed = () => sockets.filter(socket => socket.closed).length
  // A connection is refused only once the proxy has accepted it.
  for (let tries = 0; tries < 3000 && closed() < 10; tries++) await new Promise(resolve => setTimeout(resolve, 10))
  t.equal(closed(), 10)
  t.match((await stage.proxy.call('GET', '/metrics')).body, /^berth_egress_connections 20$/m)
  for (const socket of sockets) socket.destroy()
  // The other side notices in its own time.
  while (!/^berth_egress_connections 0$/m.test((await stage.proxy.call('GET', '/metrics')).body)) await new Promise(resolve => setTimeout(resolve, 10))
  for (let count = 0; count < 5; count++) void ask(stage.proxy, stage.guest, { name: HOST, headers: { host: stage.host(HOST) } }).catch(() => {})
  while (!/^berth_egress_requests_under_way 5$/m.test((await stage.proxy.call('GET', '/metrics')).body)) await new Promise(resolve => setTimeout(resolve, 10))
  t.match(await ask(stage.proxy, stage.guest, { name: HOST, headers: { host: stage.host(HOST) } }), { status: 429, text: /too_many_requests/ })
  hold = false
  t.equal(await alive(stage, other), 200)
})

t.test('A58: what guests give up while its host is dialled is dialled for no more, in either protocol', async (t) => {
  const stage = await setStage(t, { limits: { connectMs: 60_000 } })
  stage.names.records.set(HOST, [loopback(100)])
  // It takes connections, and says nothing in any handshake.
  const origin = await startRawOrigin({ address: loopback(100), port: stage.port, host: HOST, heard () {} })
  t.teardown(() => origin.close())
  for (let round = 0; round < 6; round++) {
    const before = origin.connections
    const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: [round < 3 ? 'http/1.1' : 'h2'] })
    if (round < 3) socket.write(`GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`.repeat(3))
    else connectHttp2(`https://${HOST}`, { createConnection: () => socket }).on('error', () => {}).request({ ':authority': stage.host(HOST), ':path': '/' }).on('error', () => {})
    await eventually('it is dialled', () => origin.connections > before)
    socket.destroy()
    await eventually('the dial has ended with the request', () => origin.open() === 0, { limitMs: 5_000 })
  }
  const ended = async () => (await stage.proxy.audit(`vm-${stage.guest}`)).filter(({ protocol }) => protocol !== 'tls').map(({ reason }) => reason)
  await eventually('each of the requests has ended, also those that wait behind another', async () => (await ended()).length === 12, { limitMs: 5_000 })
  t.same([...new Set(await ended())], ['guest_closed'])
})

/** The first message of a TLS client, as bytes. */
async function clientHello (name: string): Promise<Buffer> {
  const server = createServer().listen(0, loopback(3))
  await once(server, 'listening')
  const place = server.address()
  const accepted: Promise<Socket> = once(server, 'connection').then(([socket]) => socket)
  const client = connectTls({ host: loopback(3), port: typeof place === 'object' ? place?.port ?? 0 : 0, servername: name, rejectUnauthorized: false })
  client.on('error', () => {})
  const socket = await accepted
  const [bytes] = await once(socket, 'data')
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}
