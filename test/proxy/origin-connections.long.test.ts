// What passes between the proxy and origins that speak HTTP/1.1 as they like, down to the bytes.
import t, { type Test } from 'tap'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer, type TLSSocket } from 'node:tls'
import { ask, exchangeBytes, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { setStage, type Stage } from './helpers/setup.ts'

interface RawOrigin {
  connections: number
  /** what came in on each connection */
  readonly received: string[]
}

/** Starts an origin that is told of each piece that arrives, and writes what it likes. */
async function startRaw (t: Test, stage: Stage, heard: (socket: TLSSocket, text: string, connection: number) => void): Promise<RawOrigin> {
  const origin: RawOrigin = { connections: 0, received: [] }
  const open = new Set<TLSSocket>()
  const server = createServer(stage.authority.issue('api.good.test'), socket => {
    const index = origin.connections++
    open.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      origin.received[index] = (origin.received[index] ?? '') + chunk.toString('latin1')
      heard(socket, chunk.toString('latin1'), index)
    })
  })
  stage.names.records.set('api.good.test', [loopback(100)])
  server.listen(stage.port, loopback(100))
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return origin
}

const get = async (stage: Stage, path: string, method = 'GET') => await ask(stage.proxy, stage.guest, { name: 'api.good.test', path, method, headers: { host: stage.host('api.good.test') } })
const pathOf = (text: string) => /^[A-Z]+ (\S+) /.exec(text)?.[1]

t.test('A49: what an origin sends behind its answer, or before it was asked, is never the answer to a later request', async (t) => {
  const stage = await setStage(t)
  const forged = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged'
  const origin = await startRaw(t, stage, (socket, text) => {
    const path = pathOf(text)
    const answer = `HTTP/1.1 200 OK\r\nContent-Length: ${path?.length}\r\n\r\n${path}`
    if (path === '/together') socket.write(answer + forged)
    else if (path === '/later') socket.write(answer, () => setTimeout(() => socket.write(forged), 20))
    else if (path === '/head') socket.write('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged')
    else if (path === '/304') socket.write(`HTTP/1.1 304 Not Modified\r\n\r\n${forged}`)
    else socket.write(answer)
  })
  for (const [path, method] of [['/together'], ['/later'], ['/head', 'HEAD'], ['/304']] as const) {
    const before = origin.connections
    t.match(await get(stage, path, method), { status: path === '/304' ? 304 : 200, text: method === 'HEAD' || path === '/304' ? '' : path })
    await delay(path === '/later' ? 100 : 0)
    t.match(await get(stage, '/next'), { status: 200, text: '/next' }, `after ${path}`)
    t.equal(origin.connections - before, path === '/together' ? 2 : 1, 'on another connection')
  }
})

t.test('A49: an answer that could be read in two ways is a 502, and its connection is not used again', async (t) => {
  const stage = await setStage(t)
  const bad: Record<string, string> = {
    '/two-lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx',
    '/length-and-chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '/line-feeds': 'HTTP/1.1 200 OK\nContent-Length: 1\n\nx',
    '/folded': 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n',
    '/mail': '220 mail.test ESMTP\r\n',
    '/protocols': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'
  }
  const origin = await startRaw(t, stage, (socket, text) => { socket.write(bad[pathOf(text) ?? ''] ?? 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood') })
  for (const path of Object.keys(bad)) {
    const refused = await get(stage, path)
    t.match(refused, { status: 502, text: /upstream_failed/ }, path)
    t.match(await get(stage, '/next'), { status: 200, text: 'good' })
  }
  t.equal(origin.connections, Object.keys(bad).length + 1, 'each bad answer cost a connection')
  // A chunk that lies comes when the answer has begun: then it can only be cut off.
  bad['/chunk'] = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n'
  await t.rejects(get(stage, '/chunk'))
})

t.test('a connection is used again only while the origin keeps it', async (t) => {
  const stage = await setStage(t)
  const origin = await startRaw(t, stage, (socket, text) => {
    const line = pathOf(text) === '/close' ? 'Connection: close\r\n' : pathOf(text) === '/short' ? 'Keep-Alive: timeout=1\r\n' : ''
    socket.write(`HTTP/1.1 200 OK\r\n${line}Content-Length: 1\r\n\r\nx`)
  })
  for (const [path, connections] of [['/', 1], ['/', 1], ['/close', 1], ['/', 2], ['/short', 2], ['/', 3]] as const) {
    t.equal((await get(stage, path)).text, 'x')
    t.equal(origin.connections, connections, path)
  }
})

t.test('an origin that answers early gets the whole body all the same, and its connection is not used again: the body could be taken for the next request', async (t) => {
  const stage = await setStage(t)
  const size = 3_000_000
  let answeredEarly = false
  const origin = await startRaw(t, stage, (socket, text, index) => {
    if (text.startsWith('POST')) {
      answeredEarly = true
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly')
    } else if (text.startsWith('GET') || origin.received[index]?.endsWith('\r\n\r\n') === true) {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext')
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  t.teardown(() => socket.destroy())
  const head = `POST / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\nContent-Length: ${size}\r\n\r\n`
  t.match(await exchangeBytes(socket, `${head}0123456789`, text => text.endsWith('early')), /^HTTP\/1\.1 200 /)
  t.ok(answeredEarly)
  socket.write(Buffer.alloc(size - 10, 'b'))
  while ((origin.received[0]?.split('\r\n\r\n')[1]?.length ?? 0) < size) await delay(5)
  t.equal((await get(stage, '/')).text, 'next')
  t.equal(origin.connections, 2)
})

t.test('a guest that goes away behind an early answer ends the request that it does not finish', async (t) => {
  const stage = await setStage(t)
  const gone: TLSSocket[] = []
  const origin = await startRaw(t, stage, (socket, text) => {
    socket.on('close', () => gone.push(socket))
    if (text.startsWith('POST')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly')
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  await exchangeBytes(socket, `POST / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\nContent-Length: 100\r\n\r\nbody`, text => text.endsWith('early'))
  t.equal(gone.length, 0)
  socket.destroy()
  while (gone.length === 0) await delay(5)
  t.match(origin.received[0], /\r\n\r\nbody$/)
})

t.test('bodies of many origins that arrive at the same time, for guests that read slowly, do not get into each other', async (t) => {
  const stage = await setStage(t)
  const size = 5_000_000
  const ways = [1, 2, 3, 4, 5, 6].map(number => ({ number, name: `o${number}.good.test`, block: Buffer.alloc(size, number) }))
  for (const { number, name, block } of ways) {
    await stage.origin(100 + number, {
      hosts: [name],
      answer (seen, response) {
        if (seen.url === '/chunked') {
          // Pieces of all sizes, from ones that go at once to ones of several batches.
          for (let at = 0, length = 1; at < size; at += length, length = length * 3 % 200_003 + 1) response.write(block.subarray(at, at + length))
          response.end()
        } else {
          response.writeHead(200, { 'content-length': size })
          response.end(block)
        }
      }
    })
  }
  const expected = ways.map(({ block }) => createHash('sha256').update(block).digest('hex'))
  for (const path of ['/', '/chunked']) {
    const found = await Promise.all(ways.map(async ({ name, number }) => {
      const socket = await openTls(stage.proxy, stage.guest, name)
      const outgoing = request({ createConnection: () => socket, path, headers: { host: stage.host(name) } }).end()
      const [response] = await once(outgoing, 'response')
      const hash = createHash('sha256')
      for await (const chunk of response) {
        hash.update(chunk)
        if (number % 2 === 0) await delay(1)
      }
      socket.destroy()
      return hash.digest('hex')
    }))
    t.same(found, expected, path)
  }
})
