// Requests over HTTP/2 that an origin says it has not processed: they are sent again, once, and no other is.
import { connect, constants, type ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { ACK, DATA, END_HEADERS, END_STREAM, frame, FrameReader, GOAWAY, HEADERS, headers, PREFACE, RST_STREAM, SETTINGS, word } from './helpers/frames.ts'
import { openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { startRawOrigin, type RawOrigin } from './helpers/raw-origin.ts'
import { setStage, type Stage } from './helpers/setup.ts'

const HOST = 'api.good.test'
const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_REFUSED_STREAM: REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM: ENHANCE_YOUR_CALM, NGHTTP2_CANCEL: CANCEL } = constants

interface Arrived { readonly connection: number, readonly stream: number, readonly body: string, readonly isWhole: boolean }

interface Origin extends RawOrigin {
  /** requests as they came, by connection and stream */
  readonly arrived: Map<string, Arrived>
}

type Reaction = (socket: Socket, arrived: Arrived) => void

/** An origin whose reaction to each header, piece and end of a request the test says. */
async function startOrigin (t: Test, stage: Stage, react: Reaction): Promise<Origin> {
  const readers: FrameReader[] = []
  const arrived = new Map<string, Arrived>()
  stage.names.records.set(HOST, [loopback(100)])
  const origin = await startRawOrigin({
    address: loopback(100),
    port: stage.port,
    host: HOST,
    authority: stage.authority,
    alpn: ['h2'],
    heard (socket, piece, connection) {
      let bytes = piece
      if (readers[connection] === undefined) {
        readers[connection] = new FrameReader()
        socket.write(frame(SETTINGS, 0, 0))
        bytes = piece.subarray(PREFACE.length)
      }
      for (const { type, flags, stream, body } of readers[connection].push(bytes)) {
        if (type === SETTINGS && (flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0))
        if (type !== HEADERS && type !== DATA) continue
        const key = `${connection}:${stream}`
        const now = { connection, stream, body: (arrived.get(key)?.body ?? '') + (type === DATA ? body.toString() : ''), isWhole: (flags & END_STREAM) !== 0 }
        arrived.set(key, now)
        react(socket, now)
      }
    }
  })
  t.teardown(() => origin.close())
  return Object.assign(origin, { arrived })
}

const answer = (socket: Socket, stream: number, text: string): void => {
  socket.write(Buffer.concat([headers(stream, 0, [[':status', '200']]), frame(DATA, END_STREAM, stream, Buffer.from(text))]))
}
const goaway = (last: number, code: number): Buffer => frame(GOAWAY, 0, 0, Buffer.concat([word(last), word(code)]))

async function open (t: Test, stage: Stage): Promise<ClientHttp2Session> {
  const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
  const session = connect(`https://${HOST}`, { createConnection: () => socket })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  return session
}

async function ask (session: ClientHttp2Session, stage: Stage, pieces: readonly (string | Buffer)[] = []): Promise<{ readonly status: number, readonly text: string }> {
  const stream = session.request({ ':authority': stage.host(HOST), ':path': '/', ':method': pieces.length === 0 ? 'GET' : 'POST' }, { endStream: pieces.length === 0 })
  stream.on('error', () => {})
  let status = 0
  let text = ''
  stream.on('response', (found) => { status = Number(found[':status'] ?? 0) })
  stream.on('data', (chunk: Buffer) => { text += chunk.toString() })
  for (const piece of pieces) stream.write(piece)
  if (pieces.length > 0) stream.end()
  await new Promise((resolve) => { stream.once('close', resolve) })
  return { status, text }
}

const REFUSALS: Readonly<Record<string, (socket: Socket, stream: number) => void>> = {
  'a GOAWAY without an error of an earlier stream': (socket, stream) => { socket.write(goaway(stream - 2, NO_ERROR)) },
  'a GOAWAY with an error of an earlier stream': (socket, stream) => { socket.end(goaway(stream - 2, ENHANCE_YOUR_CALM)) },
  REFUSED_STREAM: (socket, stream) => { socket.write(frame(RST_STREAM, 0, stream, word(REFUSED_STREAM))) },
  'a GOAWAY of this stream, and REFUSED_STREAM': (socket, stream) => { socket.write(Buffer.concat([goaway(stream, NO_ERROR), frame(RST_STREAM, 0, stream, word(REFUSED_STREAM))])) }
}

t.test('a request that its origin has not processed is sent again, with its whole body', async (t) => {
  for (const [how, refuse] of Object.entries(REFUSALS)) {
    for (const [what, pieces] of [['without a body', []], ['with a body', ['first ', 'second']]] as const) {
      await t.test(`after ${how}, ${what}`, async (t) => {
        const stage = await setStage(t)
        let refused = 0
        const origin = await startOrigin(t, stage, (socket, { connection, stream, body, isWhole }) => {
          if (connection === 0 && stream === 1) {
            if (isWhole) answer(socket, stream, 'at once')
          } else if (refused === 0) {
            if (!isWhole) return
            refused++
            refuse(socket, stream)
          } else if (isWhole) answer(socket, stream, `again ${body}`)
        })
        const session = await open(t, stage)
        t.match(await ask(session, stage), { status: 200, text: 'at once' })
        t.same(await ask(session, stage, pieces), { status: 200, text: `again ${pieces.join('')}` })
        t.equal(origin.arrived.size, 3)
        const entries = await stage.proxy.audited(`vm-${stage.guest}`, (all) => all.length > 1)
        t.match(entries.at(1), { status: 200, bytesIn: pieces.join('').length, reason: undefined })
        t.equal(entries.length, 2, 'it is one request for the log')
      })
    }
  }
})

t.test('a request that is refused while its body is still under way is sent again from its beginning', async (t) => {
  const stage = await setStage(t)
  let refused = 0
  const origin = await startOrigin(t, stage, (socket, { stream, body, isWhole }) => {
    if (refused === 0 && body !== '') {
      refused++
      socket.write(goaway(0, NO_ERROR))
    } else if (refused > 0 && isWhole) answer(socket, stream, body)
  })
  const session = await open(t, stage)
  const stream = session.request({ ':authority': stage.host(HOST), ':path': '/', ':method': 'POST' })
  stream.on('error', () => {})
  let text = ''
  stream.on('data', (chunk: Buffer) => { text += chunk.toString() })
  stream.write('before ')
  await eventually('it is sent again', () => origin.connections === 2)
  stream.end('after')
  await new Promise((resolve) => { stream.once('close', resolve) })
  t.equal(text, 'before after')
})

t.test('what may have been processed, was refused before, or is too large to be kept is not sent again', async (t) => {
  const large = Buffer.alloc(100_000, 'x')
  const cases: Readonly<Record<string, { readonly react: Reaction, readonly pieces?: readonly Buffer[], readonly times: number }>> = {
    'a GOAWAY of this stream, and the end': { react: (socket, { stream, isWhole }) => { if (isWhole) socket.end(goaway(stream, NO_ERROR)) }, times: 1 },
    'a GOAWAY of this stream with the code of a refusal': { react: (socket, { stream, isWhole }) => { if (isWhole) socket.end(goaway(stream, REFUSED_STREAM)) }, times: 1 },
    'a cancelled stream': { react: (socket, { stream }) => { socket.write(frame(RST_STREAM, 0, stream, word(CANCEL))) }, times: 1 },
    'the end of the connection': { react: (socket) => { socket.end() }, times: 1 },
    'REFUSED_STREAM each time': { react: (socket, { stream, isWhole }) => { if (isWhole) socket.write(frame(RST_STREAM, 0, stream, word(REFUSED_STREAM))) }, times: 2 },
    'a GOAWAY each time': { react: (socket, { isWhole }) => { if (isWhole) socket.write(goaway(0, NO_ERROR)) }, times: 2 },
    'a large body': { react: (socket, { body, stream }) => { if (body.length > 65_000) socket.write(frame(RST_STREAM, 0, stream, word(REFUSED_STREAM))) }, pieces: [large], times: 1 }
  }
  for (const [how, { react, pieces, times }] of Object.entries(cases)) {
    await t.test(how, async (t) => {
      const stage = await setStage(t)
      const origin = await startOrigin(t, stage, react)
      t.match(await ask(await open(t, stage), stage, pieces), { status: 502 })
      t.equal(origin.arrived.size, times)
      t.match(await stage.proxy.audited(`vm-${stage.guest}`, (all) => all.length > 0), [{ status: 502, reason: 'upstream_failed' }])
    })
  }
})

t.test('an answer that has begun and is refused then is not asked for again', async (t) => {
  const stage = await setStage(t)
  const origin = await startOrigin(t, stage, (socket, { stream }) => {
    socket.write(Buffer.concat([headers(stream, END_HEADERS, [[':status', '200']]), frame(DATA, 0, stream, Buffer.from('half')), frame(RST_STREAM, 0, stream, word(REFUSED_STREAM))]))
  })
  t.match(await ask(await open(t, stage), stage), { status: 200 })
  t.equal(origin.arrived.size, 1)
})
