// What strangers, and programs of guests, may try against an ingress: hosts, paths, headers and bodies that can be read in two ways, slowness, and ways to what is nobody's business.
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { findProcesses } from '../../../plugins/ingress/process/find.ts'
import { eventually } from '../../helpers/eventually.ts'
import type { Machine } from '../networking/world.ts'
import type { Stage } from './stage.ts'

/** @returns all that came until the connection was closed */
async function raw (stage: Stage, words: string): Promise<string> {
  return await rawFrom(stage, '127.0.0.1', words)
}

async function rawFrom (stage: Stage, localAddress: string, words: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: stage.http, localAddress })
  socket.on('error', () => {})
  // Each character is a byte.
  socket.write(words, 'latin1')
  return await text(socket)
}

/** Cases of `serving.test.ts`, whose ingress they are about. @param ca of its certificates */
export async function hostile (t: Test, stage: Stage, guest: Machine, ca: string): Promise<void> {
  const close = 'Connection: close\r\n'
  await t.test('a host that is said twice, differently, or with a path in it leads nowhere', async (t) => {
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: web.test\r\nHost: other.preview.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /)
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: ../../web.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /)
    t.match(await raw(stage, `GET / HTTP/1.1\r\n${close}\r\n`), /^HTTP\/1.1 400 /)
    // The request line counts, and the program hears of nothing else.
    t.match(await raw(stage, `GET http://web.test/ HTTP/1.1\r\nHost: other.preview.test\r\n${close}\r\n`), /"name":"web".*"host":"web\.test/s)
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: unknown.test\r\nX-Berth-Host: web.test\r\nX-Forwarded-Host: web.test\r\n${close}\r\n`), /^HTTP\/1.1 404 /)
  })
  await t.test('a path that can be read in two ways leads around no rule', async (t) => {
    for (const path of ['/x/../other', '/%2e%2e/other', '//other', '/other%2f..%2f', '/x/..;/other', '/./other', '/%5cother', '/other%00', '/other#x', '/other#/y', '/#/../other', '/other\u00a0x', '/other\tx', '/other x', '\\other', '/other\0']) {
      t.match(await raw(stage, `GET ${path} HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /, path)
    }
    for (const target of ['http://web.test/other#x', 'http://web.test#/../other', 'http://web.test/#/other', 'http://web.test?/other', '?/other', '#/other', 'other', '*']) {
      t.match(await raw(stage, `GET ${target} HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /, target)
    }
    for (const target of ['http://web.test/other', 'http://web.test/other?#x', '/other?/../x']) t.match(await raw(stage, `GET ${target} HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /"name":"other"/, target)
    t.match(await raw(stage, `GET /%6fther HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /"name":"other"/)
    t.match(await raw(stage, `GET /a%0d%0aX-Berth-Host:%20locked.test HTTP/1.1\r\nHost: plain.test\r\n${close}\r\n`), /"name":"web"/)
  })
  await t.test('a second request cannot be hidden in the body of a first', async (t) => {
    t.match(await raw(stage, `POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n${close}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n`), /^HTTP\/1.1 400 /)
    t.match(await raw(stage, `POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n${close}\r\nabcde`), /^HTTP\/1.1 400 /)
    t.match(await raw(stage, `POST / HTTP/1.1\r\nHost: web.test\r\nTransfer-Encoding: xchunked\r\n${close}\r\n0\r\n\r\n`), /^HTTP\/1.1 (400|501) /)
  })
  await t.test('what a program says beyond its answer is no answer to the next request, of the same client or another', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const next = async (host: string): Promise<string> => {
      const asked = httpRequest({ host: '127.0.0.1', port: stage.http, headers: { host }, agent })
      asked.end()
      const [response] = await once(asked, 'response')
      return await text(response)
    }
    for (let round = 0; round < 3; round++) {
      t.equal(await next('talkative.test'), 'ok')
      t.match(await next('web.test'), /"name":"web"/)
      t.match(await stage.ask({}), { body: /"name":"web"/ })
    }
    agent.destroy()
  })
  await t.test('clients that say their headers byte by byte hinder nobody, and are cut off', async (t) => {
    const slow = Array.from({ length: 100 }, () => {
      const socket = connect(stage.http, '127.0.0.1')
      socket.on('error', () => {})
      socket.write('GET / HTTP/1.1\r\nHost: web.test\r\nX-Slow: ')
      return { socket, closed: new Promise<void>((resolve) => { socket.once('close', () => { resolve() }) }) }
    })
    const talking = setInterval(() => { for (const { socket } of slow) if (socket.writable) socket.write('a') }, 500).unref()
    const began = performance.now()
    t.match(await stage.ask({}), { status: 200 })
    for (const { socket } of slow) socket.resume()
    await Promise.all(slow.map(async ({ closed }) => { await closed }))
    clearInterval(talking)
    t.ok(performance.now() - began < 40_000, 'however much they go on')
    t.match(await stage.ask({}), { status: 200 })
  })
  await t.test('a guest reaches nothing of it: no port in its network, and no socket', async (t) => {
    const { world } = stage
    t.notMatch(await world.in(world.namespace, 'ss', '--no-header', '--listening', '--tcp', '--processes'), /nginx/)
    t.notMatch(await world.in(world.namespace, 'ss', '--no-header', '--listening', '--unix'), /@/, 'none whose name counts in the network')
    const { gateway } = guest.address
    for (const host of [gateway, '127.0.0.1']) {
      for (const port of [stage.http, stage.https]) {
        t.notMatch(await guest.ask({ do: 'call', protocol: 'tcp', host, port, timeoutMs: 1500 }), /HTTP|^open/, `${host}:${port}`)
      }
    }
  })
  await t.test('headers without end are refused', async (t) => {
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: web.test\r\nX-Large: ${'a'.repeat(70_000)}\r\n\r\n`), /^HTTP\/1.1 400 /)
    t.match(await stage.ask({ headers: { 'x-large': 'a'.repeat(12_000) } }), { status: 200 })
  })
  await t.test('a program cannot send nginx anywhere', async (t) => {
    t.match(await stage.ask({ path: '/redirecting' }), { status: 200, body: 'only words' })
    t.match(await stage.ask({ path: '/.berth-decide' }), { status: 404 })
  })
  await t.test('another user cannot ask where requests go, nor nginx\'s own figures', async (t) => {
    const { world, paths } = stage
    for (const socket of ['decide.sock', 'run/status.sock']) {
      await t.rejects(world.real.run('setpriv', ['--reuid=1900000001', '--regid=1900000001', '--clear-groups', 'curl', '--silent', '--show-error', '--max-time', '5', '--unix-socket', join(paths.folder, socket), 'http://x/']), { message: /Permission denied|connect/ })
    }
  })
  await t.test('more ways to name another host lead nowhere, and the program hears of one host alone', async (t) => {
    for (const host of ['web.test:1', 'WEB.TEST', 'web.test.']) t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}\r\n`), new RegExp(`"host":"web\\.test:${stage.http}"`), host)
    for (const host of ['web.test@other.preview.test', 'web.test#', 'web.test\\other', 'web.test/other', 'web.test, other.preview.test', '[::1]', '127.0.0.1', '*.secure.test', '{app}.preview.test', '_']) {
      t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}\r\n`), /^HTTP\/1.1 (400|404) /, host)
    }
    t.match(await raw(stage, `GET http://unknown.test/ HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 404 /, 'what the request line says counts')
    t.match(await raw(stage, `GET http://evil@web.test/ HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 (400|404) /)
    t.match(await raw(stage, `CONNECT other.preview.test:8080 HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 40[05] /)
    t.match(await raw(stage, 'GET / HTTP/1.0\r\n\r\n'), /^HTTP\/1.1 404 /, 'none at all')
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost : web.test\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /, 'a space before the colon')
  })
  await t.test('what the client says of itself by any spelling of the standard headers does not reach the program', async (t) => {
    const heard = await raw(stage, 'GET / HTTP/1.1\r\nHost: web.test\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443\r\nX-Forwarded-Host: evil.test\r\nX-Berth-Client: 6.6.6.6\r\nConnection: close, X-Forwarded-For, X-Real-IP\r\nKeep-Alive: timeout=1\r\n\r\n')
    t.match(heard, new RegExp(`"x-forwarded-for":"127\\.0\\.0\\.1","x-forwarded-proto":"http","x-forwarded-host":"web\\.test:${stage.http}","x-forwarded-port":"${stage.http}"`))
    t.match(heard, /"x-real-ip":"127\.0\.0\.1"/)
    t.notMatch(heard, /6\.6\.6\.6|7\.7\.7\.7|evil\.test/)
  })
  await t.test('a secret header is not led around by what a path, a header or a protocol can be written as', async (t) => {
    const secret = 'k'.repeat(40)
    for (const path of ['/', '//', '/%2e%2e/', '/;x', '/.', '/..%2f', '/%00', '/\\', '/?x-preview-key=' + secret, '/' + 'a'.repeat(3000)]) {
      t.match(await raw(stage, `GET ${path} HTTP/1.1\r\nHost: locked.test\r\n${close}\r\n`), /^HTTP\/1.1 40[03] /, path.slice(0, 20))
    }
    for (const header of [`X_Preview_Key: ${secret}`, `X-Preview-Key: ${secret}x`, `X-Preview-Key: ${secret}, ${secret}`, `X-Preview-Key:\r\n ${secret}`, `X-Preview-Key: ${secret}\r\nX-Preview-Key: ${secret}`]) {
      t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: locked.test\r\n${header}\r\n${close}\r\n`), /^HTTP\/1.1 40[03] /, header.slice(0, 20))
    }
    t.match(await raw(stage, `GET / HTTP/1.1\r\nHost: locked.test\r\nContent-Type: application/grpc\r\n${close}\r\n`), /^HTTP\/1.1 403 /)
    t.match(await raw(stage, 'GET / HTTP/1.1\r\nHost: locked.test\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'), /^HTTP\/1.1 403 /)
    t.match(await raw(stage, `GET /.well-known/acme-challenge/x HTTP/1.1\r\nHost: locked.test\r\n${close}\r\n`), /^HTTP\/1.1 403 /)
    t.match(await raw(stage, `GET /.well-known/acme-challenge/../../x HTTP/1.1\r\nHost: locked.test\r\n${close}\r\n`), /^HTTP\/1.1 403 /)
  })
  await t.test('a path that is written in another case, or encoded, is its own rule\'s or nobody\'s', async (t) => {
    t.match(await stage.ask({ path: '/OTHER' }), { body: /"name":"web"/ }, 'paths have cases')
    for (const path of ['/other/%2e%2e/x', '/other/..;/x', '/%2fother', '/%252e%252e/other', '/other%5c..', '/other;x', '/other//x']) t.match(await raw(stage, `GET ${path} HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 400 /, path)
  })
  await t.test('a body whose end can be read in two ways is refused, or ends the connection', async (t) => {
    for (const [what, head] of [
      ['both lengths, other way around', 'Transfer-Encoding: chunked\r\nContent-Length: 4'], ['a folded line', 'Transfer-Encoding:\r\n chunked\r\nContent-Length: 4'], ['two encodings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
      ['a list', 'Transfer-Encoding: gzip, chunked'], ['a vertical tab', 'Transfer-Encoding: \vchunked'], ['a sign', 'Content-Length: +4'], ['no decimal', 'Content-Length: 0x4'], ['a list of lengths', 'Content-Length: 4, 4'], ['a negative one', 'Content-Length: -1']
    ] as const) {
      t.match(await raw(stage, `POST / HTTP/1.1\r\nHost: web.test\r\n${head}\r\n${close}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: web.test\r\n\r\n`), /^HTTP\/1.1 (400|501) (?!.*smuggled)/s, what)
    }
    for (const chunk of ['-1\r\n', '0x4\r\nabcd\r\n0\r\n\r\n', `${'f'.repeat(17)}\r\n`, 'zz\r\n']) t.notMatch(await raw(stage, `POST / HTTP/1.1\r\nHost: web.test\r\nTransfer-Encoding: chunked\r\n${close}\r\n${chunk}`), /^HTTP\/1.1 200 /, chunk.slice(0, 6))
    t.match(await raw(stage, 'POST / HTTP/1.0\r\nHost: web.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'), /^HTTP\/1.1 (200|400) (?!.*transfer-encoding)/s)
  })
  await t.test('over HTTP/2, a body is as long as it says, and headers of HTTP/1.1 do not pass', async (t) => {
    const status = async (headers: Record<string, string>, body: string): Promise<unknown> => {
      const session = connectHttp2(`https://one.secure.test:${stage.https}`, { ca, lookup: (_host: string, _options: object, done: (error: null, found: object[]) => void): void => { done(null, [{ address: '127.0.0.1', family: 4 }]) } } as object)
      session.on('error', () => {})
      const stream = session.request(headers)
      if (body !== '') stream.end(body)
      try {
        return await new Promise((resolve) => { stream.on('response', ({ ':status': code }) => { resolve(code) }).on('error', () => { resolve('reset') }).on('close', () => { resolve('closed') }) })
      } finally {
        session.destroy()
      }
    }
    for (const length of ['1', '100']) t.not(await status({ ':method': 'POST', ':path': '/', 'content-length': length }, 'four'), 200, `of four bytes, ${length}`)
    t.equal(await status({ ':method': 'POST', ':path': '/', 'content-length': '4' }, 'four'), 200)
    t.equal(await status({ ':path': '/', ':authority': 'other.secure.test' }, ''), 421, 'another host than that of the connection')
    t.not(await status({ ':path': '/', host: 'web.test' }, ''), 200, 'two hosts')
  })
  await t.test('clients that send their body, or read their answer, slowly hinder nobody, and hold a place each and no memory', async (t) => {
    const slow = Array.from({ length: 100 }, (_, n) => {
      const socket = connect(stage.http, '127.0.0.1')
      socket.on('error', () => {})
      if (n % 2 === 0) socket.write('POST /upload HTTP/1.1\r\nHost: web.test\r\nContent-Length: 1000\r\n\r\n1')
      else socket.pause().write('GET /large HTTP/1.1\r\nHost: web.test\r\n\r\n')
      return socket
    })
    const talking = setInterval(() => { for (const [n, socket] of slow.entries()) if (n % 2 === 0 && socket.writable) socket.write('1') }, 200).unref()
    for (let round = 0; round < 10; round++) t.match(await stage.ask({}), { status: 200 })
    t.ok(slow.some((socket) => !socket.destroyed))
    const bytes = await memoryOf(stage.paths.folder)
    t.ok(bytes < 200 * 2 ** 20, `nginx has ${Math.round(bytes / 2 ** 20)} MiB`)
    t.match(await filesBelow(stage.paths.temporary), [], 'and nothing of it on disk')
    clearInterval(talking)
    for (const socket of slow) socket.destroy()
  })
  await t.test('more requests of one client at a time than are allowed are 429, and another client is served', async (t) => {
    const held = Array.from({ length: 256 }, () => {
      const socket = connect(stage.http, '127.0.0.1')
      socket.on('error', () => {})
      socket.write('GET /stream HTTP/1.1\r\nHost: web.test\r\n\r\n')
      return socket
    })
    await Promise.all(held.map(async (socket) => { await once(socket, 'data') }))
    t.match(await stage.ask({}), { status: 429 })
    t.match(await rawFrom(stage, '127.0.0.2', `GET / HTTP/1.1\r\nHost: web.test\r\n${close}\r\n`), /^HTTP\/1.1 200 /)
    for (const socket of held) socket.destroy()
    await eventually('free places', async () => (await stage.ask({})).status === 200)
  })
  await t.test('an ingress points at instances alone', async (t) => {
    for (const instance of ['127.0.0.1', 'localhost', '169.254.169.254', guest.address.ip, guest.address.gateway, 'web:22', 'web@other', '../web', 'WEB']) {
      await t.rejects(stage.create({ name: 'elsewhere', rules: [{ match: { hostname: 'elsewhere.test' }, target: { instance, port: 22 } }] }), { code: 'instance_not_found' }, instance)
    }
    for (const label of ['127', 'localhost', 'web0000000000000000000000', 'berth']) t.match(await stage.ask({ host: `${label}.preview.test` }), { status: 503, body: /There is no instance/ }, label)
    t.match(await stage.ask({ host: '127.0.0.1.preview.test' }), { status: 404 })
  })
}

/** Resident, of nginx's processes. */
async function memoryOf (folder: string): Promise<number> {
  const found = await findProcesses(folder)
  const sizes = await Promise.all(found.map(async ({ identity: { pid } }) => Number((await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]) * 4096))
  return sizes.reduce((sum, size) => sum + size, 0)
}

async function filesBelow (folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name)
}
