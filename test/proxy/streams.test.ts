import t from 'tap'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type ServerResponse } from 'node:http'
import { answered, ask, openTls } from './helpers/guest.ts'
import { setStage } from './helpers/setup.ts'

t.test('P7: the header and each event of a stream arrive when the origin writes them', async (t) => {
  const stage = await setStage(t)
  let write: ServerResponse | undefined
  await stage.origin(100, {
    streaming: (_seen, response) => {
      write = response
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const outgoing = request({ createConnection: () => socket, headers: { host: stage.host('api.good.test') } }).end()
  const [response] = await once(outgoing, 'response')
  t.equal(response.headers['content-type'], 'text/event-stream', 'the header comes before the first event')
  const delays: number[] = []
  for (let event = 0; event < 5; event++) {
    const began = performance.now()
    const arrived = once(response, 'data')
    write?.write(`data: ${event}\n\n`)
    t.equal(String((await arrived)[0]), `data: ${event}\n\n`)
    delays.push(performance.now() - began)
  }
  t.ok(Math.min(...delays) < 500, `${Math.min(...delays)} ms`)
  socket.destroy()
})

t.test('P8: large bodies go both ways whole, ranges too, and the proxy holds none of them', async (t) => {
  const stage = await setStage(t)
  const size = 32 * 1024 * 1024
  const block = randomBytes(1024 * 1024)
  const expected = createHash('sha256')
  for (let count = 0; count < size / block.length; count++) expected.update(block)
  const digest = expected.digest('hex')
  let received = ''
  await stage.origin(100, {
    streaming: (seen, response) => {
      if (seen.method === 'PUT') {
        const hash = createHash('sha256')
        seen.on('data', (chunk: Buffer) => hash.update(chunk))
        seen.on('end', () => {
          received = hash.digest('hex')
          response.end('stored')
        })
      } else if (seen.headers.range === 'bytes=1-3') {
        response.writeHead(206, { 'content-range': 'bytes 1-3/9', 'content-length': 3 }).end('bcd')
      } else {
        response.writeHead(200, { 'content-length': size })
        void pour(response, block, size)
      }
    }
  })
  const get = async (headers: Record<string, string>) => await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { host: stage.host('api.good.test'), ...headers } })
  const down = await get({})
  t.equal(createHash('sha256').update(down.body).digest('hex'), digest)
  t.match(await get({ range: 'bytes=1-3' }), { status: 206, text: 'bcd' })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const outgoing = request({ createConnection: () => socket, method: 'PUT', headers: { host: stage.host('api.good.test'), 'content-length': size } })
  const answer = answered(outgoing)
  await pour(outgoing, block, size)
  t.equal((await answer).text, 'stored')
  t.equal(received, digest)
  socket.destroy()
  const metrics = (await stage.proxy.call('GET', '/metrics')).body
  t.ok(Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics)?.[1]) < 250 * 1024 * 1024)
})

async function pour (target: NodeJS.WritableStream, block: Buffer, size: number): Promise<void> {
  for (let sent = 0; sent < size; sent += block.length) if (!target.write(block)) await once(target, 'drain')
  target.end()
}

t.test('P9: an abort on either side ends the other', async (t) => {
  const stage = await setStage(t)
  let arrived: (() => void) | undefined
  const reached = new Promise<void>(resolve => { arrived = resolve })
  let far: ServerResponse | undefined
  const origin = await stage.origin(100, {
    streaming: (_seen, response) => {
      far = response
      response.writeHead(200, { 'content-length': 1000 })
      response.write('begin')
      arrived?.()
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  socket.write(`GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`)
  await reached
  await once(socket, 'data')
  const gone = once(far?.socket ?? socket, 'close')
  const began = performance.now()
  socket.destroy()
  await gone
  t.ok(performance.now() - began < 10_000)
  const second = await openTls(stage.proxy, stage.guest, 'api.good.test')
  second.write(`GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`)
  await once(second, 'data')
  far?.socket?.destroy()
  await once(second, 'close')
  t.pass('the guest learns that the body is not whole')
  for (let tries = 0; tries < 1000 && origin.open() > 0; tries++) await new Promise(resolve => setTimeout(resolve, 10))
  t.equal(origin.open(), 0)
  const entries = await stage.proxy.audited(`vm-${stage.guest}`, found => found.length > 1)
  t.same(entries.map(entry => entry.reason), ['guest_closed', 'upstream_failed'])
})
