import t from 'tap'
import { request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { answered, ask, exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

t.test('P1: pipelined requests on one connection are answered in their order, and the origin\'s connection is used again', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100, { answer: (seen, response) => { setTimeout(() => response.end(`answer ${seen.url}`), seen.url === '/1' ? 50 : 0) } })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, [1, 2, 3].map(number => `GET /${number} HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`).join(''), text => text.includes('answer /3'))
  t.same(bytes.match(/answer \/\d/g), ['answer /1', 'answer /2', 'answer /3'])
  for (let count = 0; count < 5; count++) await exchangeOne(stage, socket)
  socket.destroy()
  t.ok(origin.connections() <= 3)
})

async function exchangeOne (stage: { host (name: string): string }, socket: Socket) {
  await exchangeBytes(socket, `GET /more HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`, text => text.includes('answer /more'))
}

t.test('an origin that ends its unused connections as they are used again is asked over a new one, however many were kept', async (t) => {
  const stage = await setStage(t)
  const kept = new WeakSet<Socket>()
  const held: ServerResponse[] = []
  const origin = await stage.origin(100, {
    streaming: (seen, response) => {
      if (seen.url === '/late') return kept.has(seen.socket) ? seen.socket.destroy() : response.end('at last')
      kept.add(seen.socket)
      held.push(response)
      if (held.length === 3) for (const each of held) each.end('one of three')
    }
  })
  const get = async (path: string) => await ask(stage.proxy, stage.guest, { name: 'api.good.test', path, headers: { host: stage.host('api.good.test') } })
  for (const { text } of await Promise.all([get('/1'), get('/2'), get('/3')])) t.equal(text, 'one of three')
  t.match(await get('/late'), { status: 200, text: 'at last' })
  t.equal(origin.connections(), 4)
})

t.test('P2: chunked bodies and trailers go both ways', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100, {
    answer (_seen, response, body) {
      response.writeHead(200, { trailer: 'x-sum', 'transfer-encoding': 'chunked' })
      response.write(body)
      response.addTrailers({ 'x-sum': 'down' })
      response.end()
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const outgoing = request({ createConnection: () => socket, method: 'POST', headers: { host: stage.host('api.good.test'), trailer: 'x-up', 'transfer-encoding': 'chunked' } })
  const answer = answered(outgoing)
  outgoing.write('one ')
  outgoing.write('two')
  outgoing.addTrailers({ 'x-up': 'up' })
  outgoing.end()
  t.match(await answer, { status: 200, text: 'one two', trailers: { 'x-sum': 'down' } })
  t.equal(origin.seen[0]?.trailers['x-up'], 'up')
  socket.destroy()
})

t.test('P3: answers without a body, HTTP/1.0 and bodies that end with the connection arrive as they are', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {
    answer (seen, response) {
      if (seen.url === '/204') response.writeHead(204).end()
      else if (seen.url === '/304') response.writeHead(304, { etag: '"x"', 'content-length': 10 }).end()
      else if (seen.url === '/205') response.writeHead(205, { 'content-length': 0 }).end()
      else if (seen.url === '/close') {
        response.useChunkedEncodingByDefault = false
        response.writeHead(200, { connection: 'close' })
        response.end('until the end')
      } else response.writeHead(200, { 'content-length': 5 }).end('hello')
    }
  })
  const get = async (path: string, method = 'GET') => await ask(stage.proxy, stage.guest, { name: 'api.good.test', path, method, headers: { host: stage.host('api.good.test') } })
  t.match(await get('/head', 'HEAD'), { status: 200, text: '', headers: { 'content-length': '5' } })
  for (const status of [204, 304, 205]) t.match(await get(`/${status}`), { status, text: '' })
  t.match(await get('/close'), { status: 200, text: 'until the end' })
  for (const [path, expected] of [['/x', /^HTTP\/1\.[01] 200 OK\r\n[^]*hello$/], ['/close', /^HTTP\/1\.[01] 200 OK\r\n[^]*until the end$/]] as const) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const bytes = await exchangeBytes(socket, `GET ${path} HTTP/1.0\r\n\r\n`)
    t.match(bytes, expected, 'HTTP/1.0, whose host is the name of the handshake')
    t.notMatch(bytes, /chunked/i)
  }
})

t.test('P4: 103 and other early answers of an origin are left out cleanly, and 417 answers an unknown expectation', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {
    answer (_seen, response) {
      response.writeEarlyHints({ link: '</a>; rel=preload' })
      response.writeProcessing()
      response.end('done')
    }
  })
  t.match(await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { host: stage.host('api.good.test') } }), { status: 200, text: 'done' })
  t.equal((await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { host: stage.host('api.good.test'), expect: 'miracles' } })).status, 417)
})

t.test('P5: cookies, repeated lines, spelling and order of headers are kept both ways', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest))
  const origin = await stage.origin(100, { answer: (_seen, response) => { response.writeHead(200, ['Set-Cookie', 'a=1', 'X-Odd-CASE', 'x', 'set-cookie', 'b=2', 'Content-Length', '0']).end() } })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const lines = [['Host', stage.host('api.good.test')], ['X-First', '1'], ['aCCept', '*/*'], ['X-Multi', 'a'], ['X-Multi', 'b'], ['Cookie', 'c=d']] as const
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\n${lines.map(line => line.join(': ')).join('\r\n')}\r\n\r\n`, text => text.includes('\r\n\r\n'))
  socket.destroy()
  t.match(bytes, /Set-Cookie: a=1\r\nX-Odd-CASE: x\r\nset-cookie: b=2\r\n/)
  t.same(origin.seen[0]?.raw.slice(0, lines.length * 2), lines.flat())
})

t.test('P5: the name of a file in ISO 8859-1 or UTF-8 arrives byte for byte, also behind the length, and behind an offer to upgrade', async (t) => {
  const stage = await setStage(t)
  const names = ['caf\xe9', 'caf\xc3\xa9']
  await stage.origin(100, { streaming: ({ url = '', socket }) => { socket.write(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: attachment; filename="${names[Number(url.slice(1))]}"\r\n\r\nok`, 'latin1')) } })
  for (const [index, name] of names.entries()) {
    for (const offer of ['', 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n']) {
      const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
      const bytes = await exchangeBytes(socket, `GET /${index} HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${offer}\r\n`, text => text.includes('\r\n\r\n'))
      t.match(bytes, /^HTTP\/1\.1 200 /)
      t.match(bytes, 'Content-Length: 2\r\n')
      t.ok(bytes.includes(`filename="${name}"`), bytes)
      socket.destroy()
    }
  }
})

t.test('P6: compressed bodies arrive byte for byte', async (t) => {
  const stage = await setStage(t)
  const bytes = gzipSync('hello '.repeat(1000))
  const origin = await stage.origin(100, { answer: (_seen, response) => { response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': bytes.length }).end(bytes) } })
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { host: stage.host('api.good.test'), 'accept-encoding': 'gzip, br' } })
  t.ok(answer.body.equals(bytes))
  t.equal(answer.headers['content-encoding'], 'gzip')
  t.equal(origin.seen[0]?.headers['accept-encoding'], 'gzip, br')
})

t.test('P14 and P25: 401, 407 and redirects pass through, and the host of a redirect gets no header of ours', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {
    answer: (seen, response) => {
      if (seen.url === '/redirect') response.writeHead(307, { location: `https://${stage.host('cdn.test')}/blob` }).end()
      else response.writeHead(Number(seen.url?.slice(1)), { 'www-authenticate': 'Bearer realm="https://auth.test/token"', 'x-left': 'yes' }).end()
    }
  })
  const cdn = await stage.origin(101, { hosts: ['cdn.test'] })
  const get = async (name: string, path: string) => await ask(stage.proxy, stage.guest, { name, path, headers: { host: stage.host(name) } })
  t.match(await get('api.good.test', '/401'), { status: 401, headers: { 'www-authenticate': 'Bearer realm="https://auth.test/token"' } })
  t.match(await get('api.good.test', '/407'), { status: 407, headers: { 'x-left': 'yes' } })
  t.equal((await get('api.good.test', '/redirect')).headers.location, `https://${stage.host('cdn.test')}/blob`)
  t.equal((await get('cdn.test', '/blob')).status, 200)
  t.equal(cdn.seen[0]?.headers.authorization, undefined)
})

t.test('P21: an unused connection that the origin closes is not seen by the guest', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100, {
    answer: (seen, response) => {
      response.end('fine')
      // Closed without a word, in the moment in which the connection counts as free.
      response.on('finish', () => setImmediate(() => seen.socket.destroy()))
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  for (let count = 0; count < 30; count++) {
    const bytes = await exchangeBytes(socket, `GET /${count} HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`, text => text.endsWith('fine'))
    t.match(bytes, /^HTTP\/1\.1 200 /)
    socket.removeAllListeners('data')
  }
  socket.destroy()
  t.ok(origin.connections() > 1)
})

t.test('A31: Alt-Svc and what else leads around the proxy is taken out, hop-by-hop lines both ways too', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest))
  const origin = await stage.origin(100, {
    answer: (_seen, response) => {
      response.writeHead(200, ['Alt-Svc', 'h3=":443"', 'Connection', 'X-Hop', 'X-Hop', 'a', 'Keep-Alive', 'timeout=9', 'Proxy-Authenticate', 'Basic', 'X-Stays', 'b', 'Content-Length', '0']).end()
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\nConnection: X-Private, close\r\nX-Private: 1\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\nX-Public: 2\r\n\r\n`)
  t.notMatch(bytes, /alt-svc|x-hop|proxy-auth|timeout=9/i)
  t.match(bytes, /X-Stays: b/)
  t.notMatch(origin.seen[0]?.raw.join('\n'), /x-private|proxy-|^te$/i)
  t.equal(origin.seen[0]?.headers['x-public'], '2')
})

t.test('a guest\'s own Authorization does not pass behind a body', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest))
  const origin = await stage.origin(100)
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  await exchangeBytes(socket, `POST / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nAuthorization: Bearer own\r\nX-Sum: 1\r\n\r\n`, text => text.includes('hello from the origin'))
  socket.destroy()
  t.same(origin.seen.map(({ trailers }) => ({ ...trailers })), [{ 'x-sum': '1' }])
  t.notMatch(origin.bytes(), /Bearer own/)
})

const refused: readonly [name: string, head: string, body?: string][] = [
  ['OPTIONS that may take no further step, written as 00', 'OPTIONS / HTTP/1.1\r\nMax-Forwards: 00\r\n'],
  ['a body that is coded as gzip and in chunks, in two lines', 'POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n']
]
for (const [name, head, body = ''] of refused) {
  t.test(`${name} reaches no origin`, async (t) => {
    const stage = await setStage(t)
    const origin = await stage.origin(100)
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, `${head}Host: ${stage.host('api.good.test')}\r\nConnection: close\r\n\r\n${body}`), /^HTTP\/1\.1 4\d\d /)
    t.equal(origin.seen.length, 0)
  })
}

t.test('an offer to upgrade to h2c, which Java makes by default, is passed over and the request answered', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const plain = await stage.origin(101, { hosts: ['plain.test'], plain: true })
  const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n'
  const tls = await openTls(stage.proxy, stage.guest, 'api.good.test')
  t.match(await exchangeBytes(tls, `POST /x HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${offer}Content-Length: 4\r\n\r\nbody`, text => text.includes('origin')), /^HTTP\/1\.1 200 /)
  tls.destroy()
  t.equal(origin.seen[0]?.body.toString(), 'body')
  const bare = await openPlain(stage.proxy, stage.guest)
  t.match(await exchangeBytes(bare, `GET /x HTTP/1.1\r\nHost: plain.test:${stage.plainPort}\r\n${offer}\r\n`, text => text.includes('origin')), /^HTTP\/1\.1 200 /)
  bare.destroy()
  t.equal(plain.seen[0]?.headers.upgrade, undefined)
})

t.test('listeners on a connection do not grow with its requests, also with ones that offer an upgrade nobody takes', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100)
  await stage.origin(101, { plain: true, hosts: ['plain.good.test'] })
  const secure = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const plain = await openPlain(stage.proxy, stage.guest)
  const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  for (let count = 0; count < 24; count++) {
    for (const [socket, host] of [[secure, stage.host('api.good.test')], [plain, `plain.good.test:${stage.plainPort}`]] as const) {
      const text = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${host}\r\n${count % 2 === 0 ? offer : ''}\r\n`, received => received.includes('hello from the origin'))
      t.match(text, /^HTTP\/1\.1 200 /)
    }
  }
  secure.destroy()
  plain.destroy()
  t.notMatch(stage.proxy.output(), /MaxListeners/)
})
