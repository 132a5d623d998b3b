// A refusal that comes before the whole body reaches its sender, on any route, however the body comes.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { App } from '../../../core/app.ts'
import { authorization, bareApp } from '../bare-app.ts'

const BODY_BYTES = 4 * 2 ** 20
const PIECE = Buffer.alloc(2 ** 16, 'x')

/** Sends everything before it reads a byte, as simple clients do. What it reads then, up to the end of the connection, or how that failed. */
async function sendThenRead (port: number, head: string, rest: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  let failure = ''
  socket.on('error', error => { failure = String(error) })
  const closed = new Promise<void>(resolve => { socket.once('close', () => { resolve() }) })
  const sent = async (bytes: Buffer | string): Promise<void> => await Promise.race([new Promise<void>(resolve => { socket.write(bytes, () => { resolve() }) }), closed])
  await sent(head)
  for (let count = 0; count < BODY_BYTES && !socket.destroyed; count += PIECE.length) await sent(PIECE)
  await sent(rest)
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  socket.resume()
  await closed
  return failure === '' ? text : `${failure} after ${text}`
}

function portOf ({ http }: App): number {
  const place = http.server.address()
  if (place === null || typeof place === 'string') throw new Error('the server has no port')
  return place.port
}

t.test('a refusal that comes before the whole body reaches who sends first and reads then, and nothing behind it is a request', async (t) => {
  const { app, lines } = await bareApp(t, { log: { level: 'debug' } })
  await app.start()
  const port = portOf(app)
  for (const connection of ['close', 'keep-alive']) {
    for (let count = 0; count < 4; count++) {
      const head = `POST /none HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization.authorization}\r\nConnection: ${connection}\r\nContent-Type: application/json\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`
      t.match(await sendThenRead(port, head, 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n'), /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"[^{}]*\}$/, connection)
    }
  }
  t.notOk(lines.some(({ path }) => path === '/health'))
})

t.test('a stop of the server waits for no sender', async (t) => {
  const { app } = await bareApp(t)
  await app.start()
  const socket = connect({ port: portOf(app), host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  socket.write('POST /none HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 100000000\r\n\r\nx')
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1\.1 4/)
  const begun = performance.now()
  await app.stop()
  // It would be waited for ten seconds.
  t.ok(performance.now() - begun < 8_000)
})
