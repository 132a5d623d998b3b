import t from 'tap'
import { once } from 'node:events'
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { openTls } from './helpers/guest.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'

interface H2Answer { readonly status: number, readonly headers: IncomingHttpHeaders, readonly trailers: IncomingHttpHeaders, readonly text: string, readonly reset: number }

async function open (t: { teardown (work: () => unknown): void }, stage: Stage, name = 'api.good.test'): Promise<ClientHttp2Session> {
  const socket = await openTls(stage.proxy, stage.guest, name, { alpn: ['h2'] })
  const session = connect(`https://${name}`, { createConnection: () => socket })
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  return session
}

async function finish (stream: ClientHttp2Stream): Promise<H2Answer> {
  let headers: IncomingHttpHeaders = {}
  let trailers: IncomingHttpHeaders = {}
  let text = ''
  stream.on('response', found => { headers = found })
  stream.on('trailers', found => { trailers = found })
  stream.on('data', chunk => { text += String(chunk) })
  stream.on('error', () => {})
  await once(stream, 'close')
  return { status: Number(headers[':status'] ?? 0), headers, trailers, text, reset: stream.rstCode }
}

type Serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

async function h2Origin (stage: Stage, serve: Serve) {
  return await stage.origin(100, { http2: server => { server.on('stream', serve) } })
}

const ask = async (session: ClientHttp2Session, stage: Stage, headers: OutgoingHttpHeaders = {}, body?: string) => {
  const stream = session.request({ ':authority': stage.host('api.good.test'), ':path': '/', ...headers }, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return await finish(stream)
}

t.test('P11: a guest\'s HTTP/2 reaches an origin that speaks it, with the real header, and one that does not', async (t) => {
  const stage = await setStage(t)
  const seen: IncomingHttpHeaders[] = []
  const origin = await h2Origin(stage, (stream, headers) => {
    seen.push(headers)
    stream.respond({ ':status': 200, 'x-echo': String(headers['authorization']), 'alt-svc': 'h3=":443"', 'set-cookie': ['a=1', 'b=2'] })
    stream.end('over h2')
  })
  const session = await open(t, stage)
  for (let count = 0; count < 5; count++) t.match(await ask(session, stage, { 'x-count': count, Authorization: 'Bearer mock' }), { status: 200, text: 'over h2', headers: { 'x-echo': 'Bearer mock-API_KEY', 'set-cookie': ['a=1', 'b=2'] } })
  t.equal(seen[0]?.['authorization'], `Bearer ${SECRET}`)
  t.equal(seen[0]?.[':authority'], stage.host('api.good.test'))
  t.equal(origin.connections(), 1, 'all streams share one connection')
  t.equal((await ask(session, stage)).headers['alt-svc'], undefined)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['old.good.test'] }]))
  const old = await stage.origin(101, { hosts: ['old.good.test'] })
  const second = await open(t, stage, 'old.good.test')
  const answer = await finish(second.request({ ':authority': stage.host('old.good.test'), ':path': '//a//b?c', ':method': 'POST', cookie: ['a=1', 'b=2'] }).end('body'))
  t.match(answer, { status: 200, text: 'hello from the origin' })
  t.match(old.seen[0], { method: 'POST', url: '//a//b?c', headers: { authorization: `Bearer ${SECRET}`, cookie: 'a=1; b=2', host: stage.host('old.good.test') } })
  t.equal(old.seen[0]?.body.toString(), 'body')
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 6)
  t.match(entry, { protocol: 'h2', status: 200, injected: ['API_KEY'], host: 'api.good.test' })
})

t.test('a path over HTTP/2 that would be more than a path in a request line is refused, whatever its origin speaks', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  for (const path of ['/a b', '/ HTTP/1.0', '/a\tb', '/\u007f', '/\u0001']) {
    // Node's HTTP/2 resets such a stream by itself.
    const answer = await ask(await open(t, stage), stage, { ':path': path }).catch(() => undefined)
    t.not(answer?.status, 200, JSON.stringify(path))
  }
  t.same(origin.seen, [])
  t.match(await ask(await open(t, stage), stage, { ':path': '/a%20b' }), { status: 200 })
  t.match(origin.seen[0], { url: '/a%20b' })
})

t.test('P12: gRPC calls of all four kinds go through: status in trailers, trailers alone, deadline, and resets both ways', async (t) => {
  const stage = await setStage(t)
  const resets: number[] = []
  let cancelled: (() => void) | undefined
  const cancellation = new Promise<void>(resolve => { cancelled = resolve })
  let arrived: (() => void) | undefined
  const reached = new Promise<void>(resolve => { arrived = resolve })
  await h2Origin(stage, (stream, headers) => {
    stream.on('error', () => {})
    stream.on('close', () => {
      resets.push(stream.rstCode)
      if (headers[':path'] === '/wait') cancelled?.()
    })
    const path = headers[':path']
    if (path === '/trailers-only') return stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '5' }, { endStream: true })
    if (path === '/reset') return stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    if (path === '/wait') return arrived?.()
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'x-te': String(headers.te), 'x-timeout': String(headers['grpc-timeout']) }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': `echo ${SECRET}` }))
    stream.on('data', chunk => stream.write(`echo:${String(chunk)}`))
    stream.on('end', () => stream.end())
  })
  const session = await open(t, stage)
  const grpc = { 'content-type': 'application/grpc', te: 'trailers', 'grpc-timeout': '5S', ':method': 'POST' }
  t.match(await ask(session, stage, { ...grpc, ':path': '/unary' }, 'one'), {
    status: 200, text: 'echo:one', trailers: { 'grpc-status': '0', 'grpc-message': 'echo mock-API_KEY' }, headers: { 'x-te': 'trailers', 'x-timeout': '5S' }, reset: 0
  })
  t.match(await ask(session, stage, { ...grpc, ':path': '/trailers-only' }, ''), { status: 200, headers: { 'grpc-status': '5' }, text: '', reset: 0 })
  const bidirectional = session.request({ ':authority': stage.host('api.good.test'), ...grpc, ':path': '/bidi' })
  for (const word of ['a', 'b', 'c']) {
    bidirectional.write(word)
    t.equal(String((await once(bidirectional, 'data'))[0]), `echo:${word}`, 'each message arrives while the stream is open')
  }
  bidirectional.end()
  t.match((await finish(bidirectional)).trailers, { 'grpc-status': '0' })
  t.ok([502, 0].includes((await ask(session, stage, { ...grpc, ':path': '/reset' }, 'x')).status))
  const waiting = session.request({ ':authority': stage.host('api.good.test'), ...grpc, ':path': '/wait' })
  waiting.on('error', () => {})
  waiting.write('x')
  await reached
  waiting.close(constants.NGHTTP2_CANCEL)
  await cancellation
  t.ok(resets.includes(constants.NGHTTP2_CANCEL), 'the origin learns that the guest has cancelled')
})

t.test('P12: trailers of an HTTP/1.1 origin reach an HTTP/2 guest, and large bodies go both ways', async (t) => {
  const stage = await setStage(t)
  const size = 8 * 1024 * 1024
  await stage.origin(100, {
    answer: (_seen, response, body) => {
      response.writeHead(200, { trailer: 'x-length' })
      response.write(body)
      response.addTrailers({ 'x-length': String(body.length) })
      response.end()
    }
  })
  const session = await open(t, stage)
  const answer = await ask(session, stage, { ':method': 'POST' }, 'x'.repeat(size))
  t.equal(answer.text.length, size)
  t.match(answer.trailers, { 'x-length': String(size) })
})

t.test('A50: how a body is framed for an origin that speaks HTTP/1.1 follows from its stream: the next request is not eaten', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const session = await open(t, stage)
  const bodies: [name: string, headers: OutgoingHttpHeaders, pieces: string[]][] = [
    ['frames', {}, ['one', 'two']],
    ['no frame', {}, []],
    ['a length of 0', { 'content-length': 0 }, []],
    ['a length', { 'content-length': 6 }, ['one', 'two']]
  ]
  for (const [name, headers, pieces] of bodies) {
    const stream = session.request({ ':authority': stage.host('api.good.test'), ':path': '/', ':method': 'POST', ...headers }, { endStream: false })
    for (const piece of pieces) {
      stream.write(piece)
      // Else the frames could be one.
      await nextTurn()
    }
    stream.end()
    t.match(await finish(stream), { status: 200, text: 'hello from the origin' }, name)
    t.equal(origin.seen.at(-1)?.body.toString(), pieces.join(''), name)
    t.match(await ask(session, stage, { ':path': '/next' }), { status: 200 }, name)
    t.equal(origin.seen.at(-1)?.url, '/next', name)
  }
  t.equal(origin.seen.length, 2 * bodies.length)
  t.equal(origin.connections(), 1)
  for (const [length, body] of [[2, 'one'], [4, 'one']] as const) {
    const stream = session.request({ ':authority': stage.host('api.good.test'), ':path': '/lie', ':method': 'POST', 'content-length': length }, { endStream: false })
    stream.end(body)
    const answer = await finish(stream).catch(() => undefined)
    t.not(answer?.status, 200, `${body.length} bytes under a length of ${length}`)
  }
  t.equal(origin.seen.length, 2 * bodies.length, 'no request with a wrong length became whole')
})

t.test('P13: WebSockets over HTTP/2 are not offered, and asking for one is refused', async (t) => {
  const stage = await setStage(t)
  const session = await open(t, stage)
  if (session.remoteSettings.maxConcurrentStreams === undefined) await once(session, 'remoteSettings')
  t.notOk(session.remoteSettings.enableConnectProtocol)
  const stream = session.request({ ':method': 'CONNECT', ':authority': stage.host('api.good.test') })
  const answer = await finish(stream)
  t.ok(answer.status === 405 || answer.reset !== 0)
})

t.test('A29 and A46: a rule that changes is in the next stream of an open session', async (t) => {
  const stage = await setStage(t)
  const seen: unknown[] = []
  await h2Origin(stage, (stream, headers) => {
    seen.push(headers['authorization'])
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  const session = await open(t, stage)
  await ask(session, stage)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value: 'second-value' }]))
  await ask(session, stage)
  await stage.proxy.policy(vmPolicy(stage.guest))
  await ask(session, stage)
  t.same(seen, [`Bearer ${SECRET}`, 'Bearer second-value', undefined])
})

t.test('an origin whose HTTP/2 session ends is connected again', async (t) => {
  const stage = await setStage(t)
  let first = true
  const origin = await h2Origin(stage, stream => {
    stream.respond({ ':status': 200 })
    stream.end('x')
    if (first) stream.session?.close()
    first = false
  })
  const session = await open(t, stage)
  t.equal((await ask(session, stage)).status, 200)
  t.equal((await ask(session, stage)).status, 200)
  t.equal(origin.connections(), 2)
})

t.test('an origin that answers an upload early and reads no more of it ends the request of its guest, without an error', async (t) => {
  const stage = await setStage(t)
  await h2Origin(stage, stream => {
    stream.on('error', () => {})
    // Behind the bytes that are held for it on the way.
    setTimeout(() => {
      stream.respond({ ':status': 413 }, { endStream: true })
      stream.close(constants.NGHTTP2_NO_ERROR)
    }, 300)
  })
  const session = await open(t, stage)
  const stream = session.request({ ':authority': stage.host('api.good.test'), ':path': '/', ':method': 'POST' })
  stream.write(Buffer.alloc(8 * 1024 * 1024))
  const late = delay(10_000, undefined, { ref: false }).then(() => 'nothing')
  t.match(await Promise.race([finish(stream), late]), { status: 413, reset: 0 })
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0)
  t.match(entry, { status: 413, reason: undefined })
})
