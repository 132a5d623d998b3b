// What a hostile guest says over the agent's stream while the server asks it for all that it can ask: whatever comes, each call ends, and another guest is served.
import { pipeline } from 'node:stream/promises'
import { Writable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import type { StreamLink } from '../../plugins/guest/link/link.ts'
import { field, frame, ScriptedGuest } from '../plugins/guest/helpers/scripted-guest.ts'
import type { Fuzz, Random } from './fuzz.ts'
import { guestFrame, guestHello } from './helpers/guest-frames.ts'
import { Hold } from './helpers/hold.ts'
import { watchUnhandled } from './helpers/unhandled.ts'

/** after the link is closed; nothing that a call waits for is left then */
const PATIENCE_MS = 10_000
const CASES = 50

const drop = (): Writable => new Writable({ write (_chunk, _encoding, done) { done() } })

async function readAll (link: StreamLink, skips: boolean): Promise<void> {
  for await (const { content } of link.get('/data', { follow: true })) {
    if (content !== undefined && !skips) await pipeline(content, drop())
  }
}

/** Each way to ask a guest; what it gives ends when the call has. */
const CALLS: readonly ((link: StreamLink, random: Random) => Promise<unknown>)[] = [
  async link => await link.stat('/', { follow: true }),
  async (link, random) => await readAll(link, random.once(2)),
  async (link, random) => {
    const { stdin, stdout, stderr, result } = link.exec({ argv: ['cat'] })
    if (random.once(2)) stdin.end(Buffer.alloc(random.below(400_000)))
    if (random.once(2)) stdout.resume()
    if (random.once(2)) stderr.resume()
    await result
  },
  async (link, random) => {
    const { content, result } = link.put({ path: '/a', type: 'file', mode: 0o644 })
    content.end(Buffer.alloc(random.below(400_000)))
    await result
  },
  async link => {
    const listener = await link.listen(80, connection => { connection.pipe(connection) })
    await link.closed
    listener.close()
  },
  async link => await link.mount({ path: '/v', device: 'serial:x', readonly: false }),
  async link => await link.sleep(),
  async link => await link.wake(),
  async link => await link.rehearse(),
  async link => await link.shutdown(1),
  async link => await link.run({ argv: ['a'], env: {}, cwd: '/', user: '', hostname: 'h', mounts: [], agent: true })
]

/** Now and then very often. */
function repeated (random: Random, bytes: Buffer): Buffer {
  return random.once(60) ? Buffer.concat(Array.from({ length: Math.min(3_000, Math.ceil(2 ** 21 / bytes.length)) }, () => bytes)) : bytes
}

/** A guest that behaves, on a link of its own. */
function neighbour (): () => Promise<boolean> {
  const guest = new ScriptedGuest()
  let channel = 0
  return async () => {
    const facts = guest.link.stat('/', { follow: true })
    // Channels are counted from one.
    await guest.seen(({ type, channel: opened }) => type === 2 && opened > channel)
    guest.send(frame(7, ++channel, 0, Buffer.concat([field(26, 'dir')])))
    return (await facts).type === 'dir'
  }
}

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const unhandled = watchUnhandled(atEnd)
    const hold = new Hold()
    const isServed = neighbour()
    const failures: string[] = []
    const log = pino({ level: 'error' }, { write: (line: string) => { failures.push(line) } })
    let cases = 0
    // The links' own timers keep no process alive.
    const alive = setInterval(() => {}, 1000)
    atEnd(() => { clearInterval(alive) })
    return async random => {
      hold.begin()
      const calls = [random.pick(CALLS), ...random.many(3, () => random.pick(CALLS))]
      const guest = new ScriptedGuest({ log, firstWords: guestHello(random), answersSync: !random.once(20) })
      const open = new Set(calls)
      const ended = Promise.allSettled(calls.map(async call => await call(guest.link, random).finally(() => { open.delete(call) })))
      if (random.once(2)) guest.link.onExited(() => {})
      const frames = random.many(12, () => repeated(random, guestFrame(random, 1 + random.below(calls.length + (random.once(4) ? 6 : 0)))))
      const whole = Buffer.concat(frames)
      const pieces = random.pieces(random.once(4) ? random.mutate(whole, 3) : whole)
      await nextTurn()
      for (const piece of pieces) {
        if (!guest.end.destroyed) guest.end.write(piece)
        await nextTurn()
      }
      await nextTurn()
      const end = random.below(3)
      if (end === 0 && !guest.end.destroyed) guest.end.end()
      else if (end === 1) guest.hostEnd.destroy(new Error('reset'))
      else guest.link.close()
      const late = new AbortController()
      const isOver = await Promise.race([ended, delay(PATIENCE_MS, 'late' as const, { signal: late.signal }).catch(() => 'late' as const)])
      late.abort()
      await nextTurn()
      const [failure] = failures.splice(0)
      const wrong = isOver === 'late' ? `a call does not end with its link: ${[...open].map(call => CALLS.indexOf(call)).join()}` : failure ?? unhandled() ?? hold.fault()
      const fault = wrong ?? (++cases % CASES === 0 && !await isServed() ? 'another guest is not served' : undefined)
      return { input: `${calls.map(call => CALLS.indexOf(call)).join()}: ${pieces.map(piece => piece.toString('hex')).join(' ').slice(0, 4_000)}`, ...fault === undefined ? {} : { fault } }
    }
  }
}
