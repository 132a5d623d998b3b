// An answer over HTTP/2 whose origin goes away in the middle of it: the guest must not take the half for the whole.
import { connect, constants, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import t from 'tap'
import { openTls } from './helpers/guest.ts'
import { setStage } from './helpers/setup.ts'

const HOST = 'api.good.test'
const { NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR, NGHTTP2_CANCEL: CANCEL, NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR } = constants

/** How the origin goes away. */
const ENDINGS: Readonly<Record<string, { readonly end: (stream: ServerHttp2Stream, socket: Socket) => void, readonly code: number }>> = {
  'its connection is closed': { end: (_stream, socket) => { socket.end() }, code: INTERNAL_ERROR },
  'its connection is reset': { end: (_stream, socket) => { socket.resetAndDestroy() }, code: INTERNAL_ERROR },
  'its session ends': { end: (stream) => { stream.session?.destroy() }, code: INTERNAL_ERROR },
  'its session ends with an error': { end: (stream) => { stream.session?.destroy(undefined, INTERNAL_ERROR) }, code: INTERNAL_ERROR },
  'the stream is cancelled': { end: (stream) => { stream.close(CANCEL) }, code: CANCEL },
  'the stream is reset with an error': { end: (stream) => { stream.close(PROTOCOL_ERROR) }, code: PROTOCOL_ERROR }
}

for (const [how, { end, code }] of Object.entries(ENDINGS)) {
  t.test(`the guest's stream is reset when ${how}`, async (t) => {
    const stage = await setStage(t)
    await stage.origin(100, {
      http2: server => {
        let connection: Socket | undefined
        server.on('connection', (socket: Socket) => { connection = socket.on('error', () => {}) })
        server.on('sessionError', () => {})
        server.on('stream', (stream) => {
          stream.on('error', () => {})
          // Otherwise Node marks the end of the body before it resets a stream.
          stream.respond({ ':status': 200 }, { waitForTrailers: true })
          stream.write('half of it', () => { setTimeout(() => { if (connection !== undefined) end(stream, connection) }, 100) })
        })
      }
    })
    const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
    const session = connect(`https://${HOST}`, { createConnection: () => socket })
    session.on('error', () => {})
    t.teardown(() => session.destroy())
    const stream = session.request({ ':authority': stage.host(HOST), ':path': '/' })
    stream.on('error', () => {})
    let text = ''
    stream.on('data', (chunk: Buffer) => { text += chunk.toString() })
    await new Promise(resolve => stream.once('close', resolve))
    t.equal(text, 'half of it')
    t.equal(stream.rstCode, code)
    t.match(await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0), [{ status: 200, reason: 'upstream_failed' }])
  })
}
