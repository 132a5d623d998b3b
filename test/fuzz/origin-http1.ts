// Answers of origins that speak HTTP/1.1, whatever the guest speaks.
import type { Fuzz } from './fuzz.ts'
import { startAttack } from './helpers/attack.ts'
import { answerBytes } from './helpers/http1-bytes.ts'

export const fuzz: Fuzz = {
  seeds: [124670067],
  async start (atEnd) {
    const { arena, fault } = await startAttack(atEnd)
    const { http1, plain } = arena.names
    return async random => {
      const pieces = random.pieces(answerBytes(random))
      const end = random.pick(['end', 'end', 'reset'])
      const [way, method] = [random.pick(['plain', 'HTTP/1.1', 'HTTP/2']), random.pick(['GET', 'GET', 'HEAD', 'POST'])]
      arena.play = (write, _stream, socket) => {
        for (const piece of pieces) write(piece)
        if (end === 'reset') socket.resetAndDestroy()
        else socket.end()
      }
      const asked = { method, ...method === 'POST' ? { body: 'a body' } : {} }
      if (way === 'HTTP/2') await arena.viaHttp2(http1, asked)
      else await arena.viaHttp1(way === 'plain' ? plain : http1, asked)
      const wrong = await fault()
      return { input: `${method} over ${way}, then ${end}: ${JSON.stringify(pieces.map(piece => piece.toString('latin1')))}`, ...wrong === undefined ? {} : { fault: wrong } }
    }
  }
}
