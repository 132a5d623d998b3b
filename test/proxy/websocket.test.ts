import t from 'tap'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { WebSocket, WebSocketServer } from 'ws'
import { eventually } from '../helpers/eventually.ts'
import { openFilesOf } from '../helpers/open-files.ts'
import { exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'
import { openStuckTunnel, startDeafOrigin } from './helpers/stuck-tunnel.ts'
import { workerOf } from './helpers/workers.ts'

const HEAD = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

async function dial (stage: Stage, name = 'api.good.test'): Promise<WebSocket> {
  const socket = await openTls(stage.proxy, stage.guest, name)
  return new WebSocket(`ws://${stage.host(name)}/chat?x=//y`, { createConnection: () => socket })
}

t.test('P10 and A44: a WebSocket carries text, binary, ping and close both ways, compressed or not, and its handshake the real header', async (t) => {
  const stage = await setStage(t)
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: true })
  const handshakes: IncomingMessage[] = []
  server.on('connection', connection => {
    connection.on('message', (data, binary) => connection.send(data, { binary }))
    connection.on('error', error => t.fail(error.message))
    connection.send('welcome')
  })
  await stage.origin(100, {
    upgrade: (request, socket, head) => {
      handshakes.push(request)
      server.handleUpgrade(request, socket, head, connection => { server.emit('connection', connection) })
    }
  })
  const client = await dial(stage)
  const [welcome] = await once(client, 'message')
  t.equal(String(welcome), 'welcome', 'what the origin sends right behind the 101 is not lost')
  for (const message of ['text', Buffer.from([0, 1, 255]), 'x'.repeat(200_000)]) {
    client.send(message)
    const [echo, binary] = await once(client, 'message')
    t.ok(Buffer.from(message).equals(echo))
    t.equal(binary, typeof message !== 'string')
  }
  client.ping('p')
  t.equal(String((await once(client, 'pong'))[0]), 'p')
  t.match(client.extensions, /permessage-deflate/)
  client.close(4001, 'bye')
  const [code, reason] = await once(client, 'close')
  t.match([code, String(reason)], [4001, 'bye'])
  t.equal(handshakes[0]?.headers.authorization, `Bearer ${SECRET}`)
  t.equal(handshakes[0]?.url, '/chat?x=//y')
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0)
  t.match(entry, { protocol: 'websocket', status: 101, injected: ['API_KEY'], path: '/chat' })
  t.ok((entry?.bytesIn ?? 0) > 0)
  server.close()
})

t.test('A44: the handshake of a WebSocket goes through the same gate', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const cases = [[`Host: ${stage.host('evil.test')}\r\n`, 421], ['', 400], [`Host: ${stage.host('api.good.test')}\r\nHost: x\r\n`, 400]] as const
  for (const [host, status] of cases) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, `GET / HTTP/1.1\r\n${host}${HEAD}\r\n`), new RegExp(`^HTTP/1\\.1 ${status} `))
  }
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  t.match(await exchangeBytes(socket, `GET http://evil.test/ HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${HEAD}\r\n`), /^HTTP\/1\.1 400 /)
  t.equal(origin.connections(), 0)
})

t.test('P10: an answer other than 101 arrives whole and framed, also when it is chunked', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {
    upgrade: (_request, socket) => {
      socket.end('HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n')
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${HEAD}\r\n`)
  t.match(bytes, /^HTTP\/1\.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n/)
  const again = await dial(stage)
  const [, response] = await once(again, 'unexpected-response')
  t.equal(response.statusCode, 401)
  let text = ''
  for await (const chunk of response) text += String(chunk)
  t.equal(text, 'firstsecond')
})

t.test('A45: a secret in the answer to a handshake is replaced, and the 101 keeps what it needs', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, { upgrade: (request, socket) => { socket.write(switching(request, `X-Echo: ${request.headers.authorization}\r\nAlt-Svc: h3\r\n`)) } })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${HEAD}\r\n`, text => text.includes('\r\n\r\n'))
  t.match(bytes, /^HTTP\/1\.1 101 /)
  t.match(bytes, /x-echo: Bearer mock-API_KEY/i)
  t.match(bytes, /sec-websocket-accept: /i)
  t.notMatch(bytes, SECRET)
  t.notMatch(bytes, /alt-svc/i)
  socket.destroy()
})

t.test('A59: a guest that resets its connection before the 101, or after it, leaves nothing behind', async (t) => {
  const stage = await setStage(t)
  const open = new Set<Socket>()
  let arrived: (() => void) | undefined
  let silent = true
  await stage.origin(100, {
    upgrade: (request, socket) => {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => open.delete(socket))
      if (!silent) socket.write(switching(request))
      arrived?.()
    }
  })
  for (silent of [true, false]) {
    const there = new Promise<void>(resolve => { arrived = resolve })
    const raw = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
    const socket = connectTls({ socket: raw, servername: 'api.good.test', ca: await stage.proxy.ca() })
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(`GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${HEAD}\r\n`)
    await there
    if (!silent) await once(socket, 'data')
    const [far] = open
    // Not `once`, which takes the reset that is wanted here for a failure.
    const gone = new Promise(resolve => far?.on('close', resolve))
    raw.resetAndDestroy()
    await gone
    t.equal(open.size, 0)
  }
  t.equal((await stage.proxy.call('GET', '/health')).status, 200)
})

t.test('A59: an origin that reads nothing of a WebSocket has no connection for long once its guest has closed', async (t) => {
  const stage = await setStage(t, { limits: { connectMs: 1000 } })
  const origin = await startDeafOrigin(stage)
  t.teardown(() => origin.close())
  const { pid } = await workerOf(stage.proxy, stage.guest)
  const count = async () => await openFilesOf(pid)
  const before = await count()
  const socket = await openStuckTunnel(stage)
  socket.resetAndDestroy()
  await eventually('the connection to the origin and that of the guest are closed', async () => await count() <= before, { limitMs: 20_000 })
  t.equal(origin.connections, 1)
})

t.test('a plain WebSocket goes through without the header, and one is ended with its VM', async (t) => {
  const stage = await setStage(t)
  let handshake: IncomingMessage | undefined
  await stage.origin(100, {
    plain: true, upgrade: (request, socket) => {
      handshake = request
      socket.on('error', () => socket.destroy())
      socket.write(switching(request))
    }
  })
  const socket = await openPlain(stage.proxy, stage.guest)
  await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: api.good.test:${stage.plainPort}\r\n${HEAD}\r\n`, text => text.includes('\r\n\r\n'))
  t.equal(handshake?.headers.authorization, undefined)
  const closed = once(socket, 'close')
  await stage.proxy.policy(vmPolicy(stage.guest, [{}], { epoch: '2' }))
  await closed
})

function switching (request: IncomingMessage, more = ''): string {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n${more}\r\n`
}
