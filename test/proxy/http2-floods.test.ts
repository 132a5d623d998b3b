import t from 'tap'
import { connect as connectHttp2 } from 'node:http2'
import { frame, PREFACE } from './helpers/frames.ts'
import { ask, closesWithin, openTls } from './helpers/guest.ts'
import { setStage } from './helpers/setup.ts'
import { holdsNobodyUp } from './helpers/stall.ts'

const HOST = 'api.good.test'

t.test('A57: floods and broken frames over HTTP/2 end their connection and nothing else', async (t) => {
  const stage = await setStage(t, { limits: { keepAliveMs: 1000 } })
  await stage.origin(100)
  const preface = Buffer.concat([PREFACE, frame(4, 0, 0)])
  const many = (one: Buffer, count: number) => Buffer.concat(new Array<Buffer>(count).fill(one))
  const attacks = {
    'malformed HEADERS': frame(1, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff])),
    'CONTINUATION without end': Buffer.concat([frame(1, 0, 1, Buffer.from([0x82])), many(frame(9, 0, 1, Buffer.alloc(1000, 0x40)), 500)]),
    'SETTINGS flood': many(frame(4, 0, 0), 20_000),
    'PING flood': many(frame(6, 0, 0, Buffer.alloc(8)), 20_000),
    'an unknown preface': Buffer.from('GARBAGE'.repeat(100)),
    'a frame that is too large': frame(0, 0, 1, Buffer.alloc(100_000)),
    'stream 0 HEADERS': frame(1, 5, 0, Buffer.from([0x82]))
  }
  for (const [name, bytes] of Object.entries(attacks)) {
    await holdsNobodyUp(t, stage.proxy, name, async () => {
      const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
      socket.resume()
      socket.write(Buffer.concat([preface, bytes]))
      socket.end()
      t.ok(await closesWithin(socket, 10_000), name)
    })
  }
  await holdsNobodyUp(t, stage.proxy, '3,000 streams that are reset', async () => {
    const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
    const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket })
    session.on('error', () => {})
    for (let count = 0; count < 3000 && !session.destroyed; count++) {
      const stream = session.request({ ':authority': stage.host(HOST) })
      stream.on('error', () => {})
      stream.close(8)
      if (count % 50 === 0) await new Promise(resolve => setImmediate(resolve))
    }
    session.destroy()
  })
  t.equal((await ask(stage.proxy, stage.guest, { name: HOST, headers: { host: stage.host(HOST) } })).status, 200)
  const metrics = (await stage.proxy.call('GET', '/metrics')).body
  t.ok(Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics)?.[1]) < 400 * 1024 * 1024)
})

t.test('a connection over HTTP/2 that had a long silent request is closed once it is unused, as any other', async (t) => {
  const stage = await setStage(t, { limits: { keepAliveMs: 1000 } })
  await stage.origin(100, { streaming: (_seen, response) => { setTimeout(() => response.end('late'), 3000) } })
  const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
  const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket })
  session.on('error', () => {})
  const stream = session.request({ ':authority': stage.host(HOST) })
  stream.setEncoding('utf8')
  t.same(await stream.toArray(), ['late'])
  t.ok(await closesWithin(socket, 10_000))
  session.destroy()
})
