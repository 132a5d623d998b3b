import t from 'tap'
import { exchangeBytes, openPlain, openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

const COMPLETE = (text: string) => /\r\n\r\n[^]*hello from the origin$/.test(text)

t.test('A49: what two parsers could read in two ways is refused, and nothing of it goes on', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const host = `Host: ${stage.host('api.good.test')}\r\n`
  const bad = {
    'Transfer-Encoding beside Content-Length': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
    'a length with a sign': `POST / HTTP/1.1\r\n${host}Content-Length: +5\r\n\r\nhello`,
    'a list of lengths': `POST / HTTP/1.1\r\n${host}Content-Length: 5,5\r\n\r\nhello`,
    'an unknown coding': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    'a coding behind chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    'a coding before chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    'chunked twice': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'a line that ends with LF alone': `GET / HTTP/1.1\r\n${host}X: y\n\r\n`,
    'CR alone inside of a line': `GET / HTTP/1.1\r\n${host}X: y\rZ: q\r\n\r\n`,
    'a folded line': `GET / HTTP/1.1\r\n${host}X: y\r\n z\r\n\r\n`,
    'a space before the colon': `GET / HTTP/1.1\r\n${host}X : y\r\n\r\n`,
    'chunks in HTTP/1.0': `POST / HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'NUL in a value': `GET / HTTP/1.1\r\n${host}X: a\0b\r\n\r\n`,
    'HTTP/2.0 in an HTTP/1 request line': `GET / HTTP/2.0\r\n${host}\r\n`,
    'HTTP/0.9': 'GET /\r\n\r\n'
  }
  for (const [name, bytes] of Object.entries(bad)) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, bytes), /^HTTP\/1\.1 400 /, name)
  }
  t.equal(origin.bytes(), '')
})

t.test('A49: a body that two parsers could read in two ways is cut off: its request never becomes whole, and its connection is not used again', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const host = `Host: ${stage.host('api.good.test')}\r\n`
  const bad = {
    'a chunk size beyond all bounds': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n`,
    'LF inside of a chunk extension': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n`,
    'a chunk that is longer than it says': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n`
  }
  for (const [name, bytes] of Object.entries(bad)) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, bytes), /^HTTP\/1\.1 400 /, name)
    const after = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.ok(COMPLETE(await exchangeBytes(after, `GET /after HTTP/1.1\r\n${host}\r\n`, COMPLETE)), 'the next request is answered')
    after.destroy()
  }
  t.same(origin.seen.map(seen => seen.url), ['/after', '/after', '/after'])
})

t.test('A50: bodies of DELETE, OPTIONS and GET arrive framed as they were, and the next request is not eaten', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const host = `Host: ${stage.host('api.good.test')}\r\n`
  for (const method of ['DELETE', 'OPTIONS', 'GET']) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const first = `${method} /first HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1c\r\nGET /smuggled HTTP/1.1\r\nX: y\r\n0\r\n\r\n`
    const second = `${method} /second HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nabc`
    await exchangeBytes(socket, first + second, text => text.split('hello from the origin').length === 3)
    socket.destroy()
    // Each may have gone over a connection of its own.
    const [one, two] = origin.seen.slice(-2).sort((a, b) => a.url < b.url ? -1 : 1)
    t.match([one?.url, one?.body.toString()], ['/first', 'GET /smuggled HTTP/1.1\r\nX: y'], method)
    t.match([two?.url, two?.body.toString(), two?.headers['content-length']], ['/second', 'abc', '3'], method)
  }
  t.notOk(origin.seen.some(seen => seen.url.includes('smuggled')))
})

t.test('A51: header names that mean something to JavaScript go through as names', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n__proto__: a\r\nconstructor: b\r\nhasOwnProperty: c\r\ntoString: d\r\n\r\n`, COMPLETE)
  socket.destroy()
  t.match(origin.bytes(), /__proto__: a\r\nconstructor: b\r\nhasOwnProperty: c\r\ntoString: d\r\n/)
  t.equal((await stage.proxy.call('PUT', '/policy', { revision: 99, vms: [vmPolicy(stage.guest, [{ header: '__proto__' }])] })).status, 400)
})

t.test('A53: a path arrives byte for byte', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  for (const path of ['//a//b', '/a/../b', '/%2e%2e/%2F', '/a?b?c=d', '/a;b=c', '/a\\b', '/http://evil.test//x', '/https:/y', '/a|b"c<d>{e}^`', '/?http:/x', '/a#b', '/%zz', '/*']) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    await exchangeBytes(socket, `GET ${path} HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`, COMPLETE)
    socket.destroy()
    t.equal(origin.seen.at(-1)?.url, path)
  }
})

t.test('a header that is too large or has too many lines is a 431', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  for (const lines of [`X: ${'a'.repeat(40_000)}\r\n`, 'X: a\r\n'.repeat(101)]) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${lines}\r\n`), /^HTTP\/1\.1 431 /)
  }
  t.equal(origin.connections(), 0)
})

t.test('P19: TLS on the plain port, and a protocol that is neither on both, is closed with a line in the log', async (t) => {
  const stage = await setStage(t, { limits: { handshakeMs: 500, headerMs: 500 } })
  const plain = await openPlain(stage.proxy, stage.guest)
  t.match(await exchangeBytes(plain, '\x16\x03\x01\x00\x05hello'), /^HTTP\/1\.1 400 /)
  const tls = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
  await exchangeBytes(tls, 'SSH-2.0-OpenSSH_9.2\r\n')
  const silent = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https)
  t.equal(await exchangeBytes(silent, ''), '', 'where the server would speak first, nobody speaks')
  const entries = await stage.proxy.audited(`vm-${stage.guest}`, found => found.length > 2)
  t.same(entries.map(entry => entry.reason).sort(), ['bad_request', 'handshake_failed', 'handshake_timeout'])
})
