// What a server says at once on a WebSocket, in one packet with its answer to the upgrade.
import { createHash } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { createApi } from '../../cli/api/client.ts'
import { openSocket } from '../../cli/api/socket.ts'

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

t.test('a message that comes in one packet with the upgrade is not lost', async (t) => {
  const server = createServer((socket) => { socket.on('data', (request) => { answerUpgrade(socket, String(request)) }) })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const { port } = Object(server.address())
  const over = new AbortController()
  const api = createApi({ url: new URL(`http://127.0.0.1:${port}`), token: undefined, ca: undefined, origin: 'the test' }, 'test', 0, over.signal)
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
