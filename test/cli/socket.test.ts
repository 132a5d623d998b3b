// What a server says at once on a WebSocket, in one packet with its answer to the upgrade; and servers that never say it to the end, or fall silent.
import { createHash } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { getEventListeners, once } from 'node:events'
import t, { type Test } from 'tap'
import { createApi, type Api } from '../../cli/api/client.ts'
import { openSocket } from '../../cli/api/socket.ts'
import { eventually } from '../helpers/eventually.ts'

const PROTOCOL = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The frame of a short text that a server sends, RFC 6455, section 5.2. */
function textFrame (text: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, Buffer.byteLength(text)]), Buffer.from(text)])
}

function answerUpgrade (socket: Socket, request: string): void {
  const [, key = ''] = /^sec-websocket-key: (\S+)/im.exec(request) ?? []
  const accepted = createHash('sha1').update(key + PROTOCOL).digest('base64')
  const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`
  socket.write(Buffer.concat([Buffer.from(head), textFrame('said at once')]))
}

/** A ping without content. */
const PING = Buffer.from([0x89, 0x00])

/** A server that answers what it is asked as the test says. */
async function apiOf (t: Test, answer: (socket: Socket, request: string) => void, over = new AbortController()): Promise<Api> {
  const server = createServer((socket) => { socket.on('error', () => undefined).on('data', (request) => { answer(socket, String(request)) }) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const { port } = Object(server.address())
  return createApi({ url: new URL(`http://127.0.0.1:${port}`), token: undefined, ca: undefined, origin: 'the test' }, 'test', 0, over.signal)
}

t.test('a message that comes in one packet with the upgrade is not lost', async (t) => {
  const over = new AbortController()
  const api = await apiOf(t, (socket, request) => answerUpgrade(socket, request), over)
  const socket = await openSocket(api, '/', over.signal)
  const heard: string[] = []
  const first = new Promise<void>((resolve) => {
    socket.on('message', (data) => {
      heard.push(String(data))
      resolve()
    })
  })
  socket.resume()
  await first
  t.strictSame(heard, ['said at once'])
  over.abort()
})

t.test('half a refusal is the end of the attempt, and so is a server that says nothing, or never stops', async (t) => {
  const signal = new AbortController().signal
  const half = 'HTTP/1.1 502 Bad Gateway\r\ncontent-length: 1000\r\n\r\nhalf of it'
  await t.rejects(openSocket(await apiOf(t, (socket) => { socket.end(half) }), '/', signal), { message: /the connection was lost in the middle of an answer/, exitCode: 6 })
  await t.rejects(openSocket(await apiOf(t, (socket) => { socket.write(half, () => socket.resetAndDestroy()) }), '/', signal), { message: /lost|cut off/, exitCode: 6 })
  await t.rejects(openSocket(await apiOf(t, () => undefined), '/', signal, { handshakeMs: 200 }), { message: /did not answer within 0\.2 s/, exitCode: 124 })
  const drops = (socket: Socket): void => {
    const timer = setInterval(() => socket.write('x'), 20)
    socket.write(half)
    socket.once('close', () => clearInterval(timer))
  }
  await t.rejects(openSocket(await apiOf(t, drops), '/', signal, { handshakeMs: 200 }), { message: /did not answer within/ }, 'drop by drop')
  await t.rejects(openSocket(await apiOf(t, (socket) => { socket.end('HTTP/1.1 409 Conflict\r\ncontent-length: 30\r\n\r\n{"code":"x","message":"it is"}') }), '/', signal), { message: 'it is', exitCode: 5 }, 'a whole one is what it says')
})

t.test('of a socket that has closed nothing stays at the signal', async (t) => {
  const over = new AbortController()
  const api = await apiOf(t, (socket, request) => answerUpgrade(socket, request), over)
  const refusing = await apiOf(t, (socket) => { socket.end('HTTP/1.1 409 Conflict\r\ncontent-length: 30\r\n\r\n{"code":"x","message":"it is"}') }, over)
  for (let count = 0; count < 20; count++) {
    const socket = await openSocket(api, '/', over.signal)
    socket.terminate()
    await once(socket, 'close')
    await t.rejects(openSocket(refusing, '/', over.signal), { message: 'it is' })
  }
  await eventually('nothing listens', () => getEventListeners(over.signal, 'abort').length === 0)
})

t.test('a server that has pinged and falls silent is given up; one that never pings is not, nor one that nobody reads', async (t) => {
  const over = new AbortController()
  const opened = async (answer: (socket: Socket) => void, silenceMs: number) => {
    const api = await apiOf(t, (socket, request) => {
      if (!request.startsWith('GET ')) return
      answerUpgrade(socket, request)
      answer(socket)
    }, over)
    return await openSocket(api, '/', over.signal, { silenceMs })
  }
  const pings = (socket: Socket): void => { socket.write(PING) }
  const steadily = (socket: Socket): void => {
    const timer = setInterval(() => socket.write(PING), 100)
    socket.once('close', () => clearInterval(timer))
  }
  const [silent, unread, steady, plain] = await Promise.all([opened(pings, 1000), opened(pings, 1000), opened(steadily, 1000), opened(() => undefined, 1000)])
  const closed = once(silent, 'close')
  for (const socket of [silent, unread, steady, plain]) socket.resume()
  await once(unread, 'ping')
  unread.pause()
  t.equal((await closed)[0], 1006)
  await new Promise((resolve) => { setTimeout(resolve, 1000) })
  for (const [name, socket] of Object.entries({ unread, steady, plain })) t.equal(socket.readyState, socket.OPEN, name)
  over.abort()
})
