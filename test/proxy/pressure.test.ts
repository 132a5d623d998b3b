import t from 'tap'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect as connectHttp2, type ServerHttp2Stream } from 'node:http2'
import { connect as connectTls } from 'node:tls'
import { eventually } from '../helpers/eventually.ts'
import { openFilesOf } from '../helpers/open-files.ts'
import { ACK, END_HEADERS, END_STREAM, frame, FrameReader, GOAWAY, HEADERS, headers, PREFACE, SETTINGS, word } from './helpers/frames.ts'
import { openPlain, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { startRawOrigin } from './helpers/raw-origin.ts'
import { setStage } from './helpers/setup.ts'
import { figure, workerOf } from './helpers/workers.ts'

const HOST = 'api.good.test'

t.test('A59: resets in the middle of uploads and downloads leave no descriptor behind', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100, {
    streaming: (seen, response) => {
      seen.resume()
      response.on('error', () => {})
      if (seen.method === 'GET') {
        response.writeHead(200)
        const pour = () => { while (!response.destroyed && response.write(Buffer.alloc(65_536)));response.once('drain', pour) }
        pour()
      }
    }
  })
  const pids = [stage.proxy.process.pid, (await workerOf(stage.proxy, stage.guest)).pid]
  const count = async () => (await Promise.all(pids.map(async pid => await openFilesOf(Number(pid))))).reduce((sum, open) => sum + open, 0)
  const before = await count()
  for (let round = 0; round < 15; round++) {
    const raw = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
    const socket = connectTls({ socket: raw, servername: HOST, ca: await stage.proxy.ca() })
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    if (round % 3 === 0) socket.write(`GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`)
    else socket.write(`POST / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\nContent-Length: 1000000\r\n\r\n${'x'.repeat(100_000)}`)
    if (round % 3 === 0) await once(socket, 'data')
    else while (origin.seen.length <= round) await new Promise(resolve => setTimeout(resolve, 5))
    raw.resetAndDestroy()
  }
  for (let tries = 0; tries < 500 && await count() > before + 1; tries++) await new Promise(resolve => setTimeout(resolve, 20))
  t.ok(await count() <= before + 1, `${before} before`)
})

t.test('A59: an origin over HTTP/2 that says farewell behind each answer, and never closes, leaves no descriptor behind', async (t) => {
  const stage = await setStage(t)
  const readers: FrameReader[] = []
  stage.names.records.set(HOST, [loopback(100)])
  const origin = await startRawOrigin({
    address: loopback(100), port: stage.port, host: HOST, authority: stage.authority, alpn: ['h2'], halfOpen: true,
    heard (socket, piece, connection) {
      const isFirst = readers[connection] === undefined
      const reader = readers[connection] ??= new FrameReader()
      if (isFirst) socket.write(frame(SETTINGS, 0, 0))
      for (const { type, flags, stream } of reader.push(isFirst ? piece.subarray(PREFACE.length) : piece)) {
        if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0))
        if (type === HEADERS) socket.write(Buffer.concat([headers(stream, END_HEADERS | END_STREAM, [[':status', '200']]), frame(GOAWAY, 0, 0, Buffer.concat([word(stream), word(0)]))]))
      }
    }
  })
  t.teardown(() => origin.close())
  const { pid } = await workerOf(stage.proxy, stage.guest)
  const count = async () => await openFilesOf(pid)
  const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
  const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket })
  t.teardown(() => session.destroy())
  const before = await count()
  for (let round = 0; round < 15; round++) {
    const stream = session.request({ ':authority': stage.host(HOST), ':path': '/' })
    const [{ ':status': status }] = await once(stream.resume(), 'response')
    t.equal(status, 200)
    await once(stream, 'close')
  }
  t.equal(origin.connections, 15)
  await eventually('its connections are closed', async () => await count() <= before + 1, { limitMs: 20_000 })
})

t.test('A60: a guest that does not read costs no memory: the origin is held back', async (t) => {
  const stage = await setStage(t)
  let sent = 0
  await stage.origin(100, {
    streaming: (_seen, response) => {
      response.writeHead(200)
      response.on('error', () => {})
      const pour = () => {
        do sent += 65_536
        while (!response.destroyed && response.write(Buffer.alloc(65_536)))
        response.once('drain', pour)
      }
      pour()
    }
  })
  const { name } = await workerOf(stage.proxy, stage.guest)
  const resident = async () => await figure(stage.proxy, 'process_resident_memory_bytes') + await figure(stage.proxy, `berth_egress_worker_resident_bytes{worker="${name}"}`)
  const socket = await openTls(stage.proxy, stage.guest, HOST)
  const before = await resident()
  const outgoing = request({ createConnection: () => socket, headers: { host: stage.host(HOST) } }).end()
  const [response] = await once(outgoing, 'response')
  response.pause()
  let last = -1
  while (last !== sent) {
    last = sent
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  t.ok(sent < 64 * 1024 * 1024, `${sent} bytes left the origin`)
  t.ok(await resident() - before < 64 * 1024 * 1024)
  socket.destroy()
})

t.test('A60: over HTTP/2 too, on each stream by itself: one that is read goes on beside one that is not', async (t) => {
  const stage = await setStage(t)
  let sent = 0
  await stage.origin(100, {
    http2: server => {
      server.on('stream', (stream: ServerHttp2Stream, headers) => {
        stream.on('error', () => {})
        stream.respond({ ':status': 200 })
        if (headers[':path'] === '/small') return stream.end('read')
        const pour = () => {
          do sent += 65_536
          while (!stream.destroyed && stream.write(Buffer.alloc(65_536)))
          stream.once('drain', pour)
        }
        pour()
      })
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
  const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket })
  t.teardown(() => session.destroy())
  const ask = (path: string) => session.request({ ':authority': stage.host(HOST), ':path': path })
  await once(ask('/large'), 'response')
  let last = -1
  while (last !== sent) {
    last = sent
    await new Promise(resolve => setTimeout(resolve, 200))
  }
  t.ok(sent < 2 * 1024 * 1024, `${sent} bytes left the origin`)
  let text = ''
  for await (const chunk of ask('/small')) text += String(chunk)
  t.equal(text, 'read')
})
