// Messages over HTTP/2 whose sender goes away in the middle of them: nobody may take the half for the whole.
import { connect, constants, type ClientHttp2Stream, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

const HOST = 'api.good.test'
const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR, NGHTTP2_CANCEL: CANCEL, NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR } = constants

/** How the origin goes away. */
const ENDINGS: Readonly<Record<string, { readonly end: (stream: ServerHttp2Stream, socket: Socket) => void, readonly code: number, readonly length?: number }>> = {
  'its connection is closed': { end: (_stream, socket) => { socket.end() }, code: INTERNAL_ERROR },
  'its connection is reset': { end: (_stream, socket) => { socket.resetAndDestroy() }, code: INTERNAL_ERROR },
  'its session ends': { end: (stream) => { stream.session?.destroy() }, code: INTERNAL_ERROR },
  'its session ends with an error': { end: (stream) => { stream.session?.destroy(undefined, INTERNAL_ERROR) }, code: INTERNAL_ERROR },
  'the stream is cancelled': { end: (stream) => { stream.close(CANCEL) }, code: CANCEL },
  'the stream is reset with an error': { end: (stream) => { stream.close(PROTOCOL_ERROR) }, code: PROTOCOL_ERROR },
  'the stream is reset without an error, before the length that it told': { end: (stream) => { stream.close(NO_ERROR) }, code: INTERNAL_ERROR, length: 100 }
}

t.test('half an answer over HTTP/2 is no guest\'s whole one: its stream is reset', async (t) => {
  for (const [how, { end, code, length }] of Object.entries(ENDINGS)) {
    await t.test(`when ${how}`, async (t) => {
      const stage = await setStage(t)
      await stage.origin(100, {
        http2: server => {
          let connection: Socket | undefined
          server.on('connection', (socket: Socket) => { connection = socket.on('error', () => {}) })
          server.on('sessionError', () => {})
          server.on('stream', (stream) => {
            stream.on('error', () => {})
            // Otherwise Node marks the end of the body before it resets a stream.
            stream.respond({ ':status': 200, ...length === undefined ? {} : { 'content-length': length } }, { waitForTrailers: true })
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
})

/** How the guest gives up in the middle of an upload. */
const CANCELS: Readonly<Record<string, (stream: ClientHttp2Stream, socket: TLSSocket) => void>> = {
  'the stream is cancelled': (stream) => { stream.close(CANCEL) },
  'the stream is reset with an error': (stream) => { stream.close(PROTOCOL_ERROR) },
  'its connection is gone': (_stream, socket) => { socket.destroy() }
}

t.test('no origin takes half an upload over HTTP/2 for the whole', async (t) => {
  for (const [how, cancel] of Object.entries(CANCELS)) {
    await t.test(`when ${how}`, async (t) => {
      const stage = await setStage(t)
      await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['*.good.test'] }]))
      const codes: number[] = []
      let begun = 0
      const old = await stage.origin(100, { hosts: ['old.good.test'], answer: () => {} })
      await stage.origin(101, {
        hosts: ['new.good.test'],
        http2: server => {
          server.on('sessionError', () => {})
          server.on('stream', (stream) => {
            begun++
            stream.on('error', () => {})
            stream.on('data', () => {})
            stream.on('close', () => { codes.push(stream.rstCode) })
          })
        }
      })
      for (const host of ['old.good.test', 'new.good.test']) {
        const socket = await openTls(stage.proxy, stage.guest, host, { alpn: ['h2'] })
        const session = connect(`https://${host}`, { createConnection: () => socket })
        session.on('error', () => {})
        t.teardown(() => session.destroy())
        // Otherwise Node marks the end of the body before it resets the stream.
        const stream = session.request({ ':method': 'POST', ':authority': stage.host(host), ':path': '/' }, { waitForTrailers: true })
        stream.on('error', () => {})
        stream.write('half of it')
        await eventually('the upload has begun', () => host.startsWith('new') ? begun === 1 : old.open() === 1)
        cancel(stream, socket)
      }
      await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length >= 2)
      await eventually('the newer origin has heard of it', () => codes.length === 1)
      t.not(codes[0], constants.NGHTTP2_NO_ERROR)
      t.same(old.seen, [], 'and the older one had no end of it')
    })
  }
})
