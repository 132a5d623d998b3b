// Connections over HTTP/2 that nghttp2 gives up without a word, and those that only look like it. Each takes several looks of proxy/upstream/given-up.ts, 3 s apart.
import { once } from 'node:events'
import { createServer, type ServerHttp2Session } from 'node:http2'
import { connect, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { endWhenGivenUp } from '../../../proxy/upstream/given-up.ts'
import { eventually } from '../../helpers/eventually.ts'
import { setArena, type Outcome } from '../helpers/arena.ts'
import { END_HEADERS, END_STREAM, frame, HEADERS, headers, PING, PREFACE, SETTINGS } from '../helpers/frames.ts'

const statusOf = (outcome: Outcome): number | string => typeof outcome === 'string' ? outcome : outcome.status

t.test('a connection over HTTP/2 that is beyond repair is closed, on either side, and what waits on it ends', async (t) => {
  const arena = await setArena(t)
  const { http2 } = arena.names
  const lines = (stream: number): Buffer => headers(stream, 0, [[':method', 'POST'], [':path', '/'], [':scheme', 'https'], [':authority', arena.stage.host(http2)]])
  /** header blocks that cannot be decoded, and frames of a size that their kind never has */
  const beyondRepair: [name: string, bytes: Buffer][] = [
    ['a header block that is cut off', frame(HEADERS, END_HEADERS | END_STREAM, 3, Buffer.from([0xff]))],
    ['SETTINGS of five bytes', frame(SETTINGS, 0, 0, Buffer.alloc(5))],
    ['PING of nine bytes', frame(PING, 0, 0, Buffer.alloc(9))]
  ]
  await Promise.all(beyondRepair.map(async ([name, bytes]) => {
    const socket = await arena.rawHttp2(http2)
    socket.resume()
    socket.write(Buffer.concat([lines(1), bytes]))
    await eventually(`${name}, of a guest: its connection is closed`, () => socket.closed)
  }))
  await eventually('no connection of the guest is left', async () => / 0$/.test(/^berth_egress_connections .*$/m.exec((await arena.stage.proxy.call('GET', '/metrics')).body)?.[0] ?? ''))
  for (const [name, bytes] of beyondRepair) {
    arena.play = write => write(bytes)
    arena.patienceMs = 60_000
    const outcome = await arena.viaHttp2(http2)
    t.not(outcome, 'silence', `${name}, of an origin`)
    t.equal(statusOf(outcome), 502, name)
  }
  await arena.held(t)
})

t.test('a session whose other side is silent lives on, also when something is queued in the turn in which it is looked at', async (t) => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  client.resume()
  client.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]))
  const [session]: ServerHttp2Session[] = await once(server, 'session') as [ServerHttp2Session]
  // Timers of one duration run one after the other, so this one is right before the look.
  const timer = setInterval(() => { if (session?.destroyed === false) session.settings({ enablePush: false }) }, 3_000)
  t.teardown(() => clearInterval(timer))
  if (session !== undefined) endWhenGivenUp(session, () => {})
  await delay(16_000)
  t.equal(session?.destroyed, false)
})
