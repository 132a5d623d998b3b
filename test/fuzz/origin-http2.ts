// Answers of origins that speak HTTP/2.
import type { Fuzz } from './fuzz.ts'
import { startAttack } from './helpers/attack.ts'
import { streamBytes } from './helpers/http2-bytes.ts'

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const { arena, fault } = await startAttack(atEnd)
    return async random => {
      const method = random.pick(['GET', 'HEAD', 'POST'])
      const status = random.once(3) ? String(random.below(1_000)).padStart(3, '0') : random.pick(['200', '204', '205', '304', '103'])
      let played: readonly Buffer[] = []
      const once = random.once(2)
      const way = random.pick(['stay', 'stay', 'end', 'reset'])
      arena.play = (write, stream, socket) => {
        if (played.length > 0) return
        played = streamBytes(random, stream, [[':status', status]])
        if (once) write(Buffer.concat(played))
        else for (const bytes of played) write(bytes)
        if (way === 'end') socket.end()
        else if (way === 'reset') socket.resetAndDestroy()
      }
      await arena.viaHttp2(arena.names.http2, { method, ...method === 'POST' ? { body: 'a body' } : {} })
      const wrong = await fault()
      return { input: `${method}, then ${way}: ${played.map(bytes => bytes.toString('hex')).join(' ')}`, ...wrong === undefined ? {} : { fault: wrong } }
    }
  }
}
