// Requests of guests over HTTP/1.1 and HTTP/2, to origins that speak either.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { openPlain, openTls } from '../proxy/helpers/guest.ts'
import { DATA, END_STREAM, frame, headers } from '../proxy/helpers/frames.ts'
import type { Fuzz } from './fuzz.ts'
import { startAttack } from './helpers/attack.ts'
import { requestBytes } from './helpers/http1-bytes.ts'
import { streamBytes } from './helpers/http2-bytes.ts'

const PATIENCE_MS = 10

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const { arena, fault, refusal } = await startAttack(atEnd)
    const { stage, names } = arena
    return async random => {
      const answers = !random.once(3)
      const way = random.pick(['plain', 'HTTP/1.1', 'HTTP/2 to HTTP/1.1', 'HTTP/2', 'HTTP/2'])
      const name = way === 'plain' ? names.plain : way === 'HTTP/2' ? names.http2 : names.http1
      const host = way === 'plain' ? `${name}:${stage.plainPort}` : stage.host(name)
      arena.play = (write, stream) => {
        if (answers) write(stream === 0 ? 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok' : Buffer.concat([headers(stream, 0, [[':status', '200']]), frame(DATA, END_STREAM, stream, Buffer.from('ok'))]))
      }
      const isHttp2 = way.startsWith('HTTP/2')
      const pseudo = [[':method', random.pick(['GET', 'POST', 'HEAD', 'OPTIONS'])], [':path', '/'], [':scheme', 'https'], [':authority', host]] as const
      const pieces = isHttp2 ? [...streamBytes(random, 1, pseudo), ...random.once(2) ? streamBytes(random, 3, pseudo) : []] : random.pieces(requestBytes(random, host))
      const input = `${way}: ${JSON.stringify(pieces.map(piece => piece.toString('latin1')))}`
      let socket: Socket
      try {
        socket = isHttp2 ? await arena.rawHttp2(name) : way === 'plain' ? await openPlain(stage.proxy, stage.guest) : await openTls(stage.proxy, stage.guest, name)
      } catch (error) {
        return { input, fault: await refusal(error) }
      }
      socket.resume()
      for (const piece of pieces) {
        if (socket.writable) socket.write(piece)
        await nextTurn()
      }
      await Promise.race([once(socket, 'close').catch(() => {}), delay(PATIENCE_MS)])
      // Node resets no connection with TLS.
      if (way === 'plain' && random.once(2)) socket.resetAndDestroy()
      else socket.destroy()
      const wrong = await fault()
      return { input, ...wrong === undefined ? {} : { fault: wrong } }
    }
  }
}
