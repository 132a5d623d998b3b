import t from 'tap'
import { once } from 'node:events'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { Socket } from 'node:net'
import { openPlain, openTls } from './helpers/guest.ts'
import { setArena, type Arena, type Play } from './helpers/arena.ts'
import { DATA, END_STREAM, frame, headers } from './helpers/frames.ts'
import { requestsOfHttp1, requestsOfHttp2, type HostileRequest } from './helpers/hostile-requests.ts'
import { playAll } from './helpers/play-all.ts'

const PATIENCE_MS = 15

/** Sends it, waits a moment for what comes of it, and goes away. */
async function send (socket: Socket, { pieces }: HostileRequest): Promise<void> {
  socket.resume()
  for (const piece of pieces) {
    if (socket.writable) socket.write(piece)
    await nextTurn()
  }
  // The proxy may reset it.
  await Promise.race([once(socket, 'close').catch(() => {}), delay(PATIENCE_MS)])
  socket.destroy()
}

const OVER_HTTP1: Record<string, Play> = {
  'answers at once': write => write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n'),
  'says nothing': () => {},
  'answers half': write => write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok')
}
const OVER_HTTP2: Record<string, Play> = {
  'answers at once': (write, stream) => write(Buffer.concat([headers(stream, 0, [[':status', '200']]), frame(DATA, 0, stream, Buffer.from('ok')), headers(stream, END_STREAM, [['x', 'y']])])),
  'says nothing': () => {},
  'answers half': (write, stream) => write(Buffer.concat([headers(stream, 0, [[':status', '200']]), frame(DATA, 0, stream, Buffer.from('ok'))]))
}

for (const [how, play] of Object.entries(OVER_HTTP1)) {
  t.test(`no request over HTTP/1.1 ends the proxy, nor holds up another VM, when its origin ${how}`, async (t) => {
    const arena = await setArena(t)
    arena.play = play
    const { http1, plain } = arena.names
    await playAll(t, arena, requestsOfHttp1(arena.stage.host(http1)), async item => await send(await openTls(arena.stage.proxy, arena.stage.guest, http1), item))
    if (how === 'answers at once') await playAll(t, arena, requestsOfHttp1(`${plain}:${arena.stage.plainPort}`), async item => await send(await openPlain(arena.stage.proxy, arena.stage.guest), item))
  })
}

const overHttp2 = async (arena: Arena, name: string): Promise<(item: HostileRequest) => Promise<void>> => async item => await send(await arena.rawHttp2(name), item)

for (const [how, play] of [...Object.entries(OVER_HTTP1).map(([how, play]) => [`over HTTP/1.1 ${how}`, play] as const), ...Object.entries(OVER_HTTP2).map(([how, play]) => [`over HTTP/2 ${how}`, play] as const)]) {
  t.test(`no request over HTTP/2 ends the proxy, nor holds up another VM, when its origin ${how}`, async (t) => {
    const arena = await setArena(t)
    arena.play = play
    const name = how.startsWith('over HTTP/2') ? arena.names.http2 : arena.names.http1
    await playAll(t, arena, requestsOfHttp2(arena.stage.host(name)), await overHttp2(arena, name))
  })
}
