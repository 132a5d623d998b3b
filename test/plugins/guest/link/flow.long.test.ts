// Flow control: a slow reader holds up only itself, memory stays within the credit, and bulk data goes fast.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { pino } from 'pino'
import t from 'tap'
import type { Test } from 'tap'
import { StreamLink } from '../../../../plugins/guest/link/link.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { field, frame, hello, ScriptedGuest, u32 } from '../helpers/scripted-guest.ts'

const WINDOW = 262_144

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

function tick (): Promise<void> { return new Promise((resolve) => setImmediate(resolve)) }

t.test('nothing is granted to a stream that nobody reads, and another channel goes on', async (t) => {
  const guest = new ScriptedGuest()
  const slow = guest.link.exec({ argv: ['slow'] })
  const quick = guest.link.exec({ argv: ['quick'] })
  await guest.seen((one) => one.type === 2 && one.channel === 2)
  for (let sent = 0; sent < WINDOW; sent += 65_536) guest.send(frame(3, 1, 1, Buffer.alloc(65_536)))
  const read = new Promise<number>((resolve) => {
    let length = 0
    quick.stdout.on('data', (piece: Buffer) => { length += piece.length; if (length >= 50_000) resolve(length) })
  })
  guest.send(frame(3, 2, 1, Buffer.alloc(50_000)))
  t.equal(await read, 50_000)
  t.notOk(guest.frames.some((one) => one.type === 5), 'no credit yet')
  slow.stdout.resume()
  const credit = await guest.seen((one) => one.type === 5 && one.channel === 1)
  t.ok(credit.payload.readUInt32LE() >= WINDOW / 2)
  guest.link.close()
})

t.test('credit comes back exactly as bytes are read', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  session.stdout.resume()
  await guest.opened('exec')
  let allowed = WINDOW
  let counted = 0
  for (let sent = 0; sent < 20 * WINDOW;) {
    const size = Math.min(allowed, 1 + Math.floor(Math.random() * 65_536))
    guest.send(frame(3, 1, 1, Buffer.alloc(size)))
    sent += size
    allowed -= size
    await tick()
    const credits = guest.frames.filter((one) => one.type === 5)
    for (const one of credits.slice(counted)) allowed += one.payload.readUInt32LE()
    counted = credits.length
    if (allowed < 0) throw new Error('the test sent too much')
  }
  t.ok(allowed >= WINDOW / 2 && allowed <= WINDOW, `${allowed} left`)
  guest.link.close()
})

t.test('who sends any number of signals and sizes waits for a guest that does not read, and the link stays', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  await guest.opened('exec')
  guest.end.pause()
  const most = 1_000_000
  let sent = 0
  const send = async (): Promise<void> => { while (sent < most) await (sent++ % 2 === 0 ? session.signal(10) : session.resize(10, 20)) }
  const sending = send()
  await new Promise((resolve) => { setTimeout(resolve, 1000) })
  const before = sent
  t.ok(before < most)
  t.ok(guest.hostEnd.writableLength < 1_048_576, `${guest.hostEnd.writableLength} bytes wait`)
  guest.end.resume()
  await eventually('it goes on', () => sent > before)
  guest.end.pause()
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  sent = most
  guest.link.close()
  await sending
})

t.test('a stream whose reader goes away is drained, so that its command can end', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  const channel = await guest.opened('exec')
  for (let sent = 0; sent < WINDOW; sent += 65_536) guest.send(frame(3, channel, 1, Buffer.alloc(65_536)))
  await tick()
  session.stdout.destroy()
  t.equal((await guest.seen((one) => one.type === 5)).payload.readUInt32LE(), WINDOW)
  guest.send(frame(3, channel, 1, Buffer.alloc(10)), frame(7, channel, 0, field(12, 0)))
  t.same(await session.result, { exitCode: 0, signal: 0 })
  guest.link.close()
})

t.test('input waits for credit', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['cat'] })
  const channel = await guest.opened('exec')
  const written = { done: false }
  session.stdin.write(Buffer.alloc(WINDOW + 100), () => { written.done = true })
  const sent = () => guest.frames.filter((one) => one.type === 3).reduce((sum, one) => sum + one.payload.length, 0)
  while (sent() < WINDOW) await tick()
  for (let round = 0; round < 20; round++) await tick()
  t.equal(sent(), WINDOW)
  t.notOk(written.done)
  guest.send(frame(5, channel, 0, u32(1000)))
  while (!written.done || sent() < WINDOW + 100) await tick()
  t.equal(sent(), WINDOW + 100)
  guest.link.close()
})

t.test('many tiny pieces that nobody reads take little memory', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  const channel = await guest.opened('exec')
  const before = process.memoryUsage().heapUsed
  for (let sent = 0; sent < WINDOW; sent += 1024) guest.send(...Array.from({ length: 1024 }, () => frame(3, channel, 1, Buffer.from('x'))))
  await tick()
  t.ok(process.memoryUsage().heapUsed - before < 48 * 2 ** 20)
  let length = 0
  guest.send(frame(7, channel, 0, field(12, 0)))
  for await (const piece of session.stdout) length += (piece as Buffer).length
  t.equal(length, WINDOW)
  guest.link.close()
})

/** What buffers hold, once all that is garbage has been given back, which goes on beside the program. */
async function held (): Promise<number> {
  for (let round = 0; round < 3; round++) {
    gc()
    await new Promise((resolve) => { setTimeout(resolve, 50) })
  }
  return process.memoryUsage().arrayBuffers
}

t.test('pieces that each came in a chunk of their own take no more memory than they have', async (t) => {
  for (const [size, small] of [[1024, 0], [4096, 0], [1024, 1], [40_000, 0]] as const) {
    const guest = new ScriptedGuest()
    const session = guest.link.exec({ argv: ['x'] })
    const channel = await guest.opened('exec')
    const before = await held()
    for (let sent = 0; sent + size + small <= WINDOW; sent += size + small) {
      if (small > 0) guest.hostEnd.emit('data', frame(3, channel, 1, Buffer.alloc(small)))
      // As a socket gives it: 64 KiB at a time, of which the rest is for somebody who reads.
      const chunk = Buffer.alloc(65_536)
      frame(3, channel, 1, Buffer.alloc(size)).copy(chunk)
      guest.hostEnd.emit('data', chunk.subarray(0, size + 12))
    }
    const more = await held() - before
    t.ok(more < 2 ** 20, `${more} bytes for pieces of ${size} and ${small}`)
    guest.send(frame(7, channel, 0, field(12, 0)))
    let length = 0
    for await (const piece of session.stdout) length += (piece as Buffer).length
    t.equal(length, Math.floor(WINDOW / (size + small)) * (size + small))
    guest.link.close()
  }
})

async function socketPair (t: Test): Promise<readonly [Socket, Socket]> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-flow-'))
  const server = createServer()
  server.listen(join(folder, 's'))
  await once(server, 'listening')
  const host = connect(join(folder, 's'))
  const accepted: unknown[] = await once(server, 'connection')
  const guest = accepted[0]
  server.close()
  t.teardown(() => rm(folder, { recursive: true }))
  return [host, guest as Socket]
}

t.test('100 MB of output and 100 MB of input pass with flat memory', async (t) => {
  const total = 100 * 2 ** 20
  const [host, guest] = await socketPair(t)
  const link = new StreamLink(host, { log: pino({ level: 'silent' }), answerTimeoutMs: 60_000 })
  const script = new FastGuest(guest, total)
  const session = link.exec({ argv: ['x'] })
  let received = 0
  let peak = 0
  session.stdout.on('data', (piece: Buffer) => {
    received += piece.length
    if (received % (4 * 2 ** 20) < piece.length) peak = Math.max(peak, process.memoryUsage().rss)
  })
  const base = process.memoryUsage().rss
  const began = performance.now()
  await finished(session.stdout)
  const outMs = performance.now() - began
  t.equal(received, total)
  const block = Buffer.alloc(65_536)
  const beganInput = performance.now()
  for (let sent = 0; sent < total; sent += block.length) if (!session.stdin.write(block)) await once(session.stdin, 'drain')
  session.stdin.end()
  t.same(await session.result, { exitCode: 0, signal: 0 })
  t.equal(script.received, total)
  const inMs = performance.now() - beganInput
  t.ok(peak - base < 64 * 2 ** 20, `grew by ${Math.round((peak - base) / 2 ** 20)} MiB`)
  t.comment(`out ${Math.round(100_000 / outMs)} MB/s, in ${Math.round(100_000 / inMs)} MB/s, both ends in one process`)
  link.close()
})

/** The guest's side with as little work as possible: sends `total` bytes within its credit, and takes input without looking at it. */
class FastGuest {
  received = 0
  readonly #socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #synced = false
  #credit = WINDOW
  #left: number
  readonly #block = frame(3, 1, 1, Buffer.alloc(65_536))

  constructor (socket: Socket, total: number) {
    this.#socket = socket
    this.#left = total
    socket.on('data', (chunk: Buffer) => { this.#take(chunk) })
    socket.on('error', () => {})
  }

  #take (chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    if (!this.#synced) {
      this.#synced = true
      this.#socket.write(Buffer.concat([this.#bytes.subarray(0, 24), hello()]))
      this.#bytes = this.#bytes.subarray(24)
    }
    while (this.#bytes.length >= 12 && this.#bytes.length >= 12 + this.#bytes.readUInt32LE(0)) {
      const length = this.#bytes.readUInt32LE(0)
      const payload = this.#bytes.subarray(12, 12 + length)
      this.#frame(this.#bytes.readUInt8(8), payload)
      this.#bytes = this.#bytes.subarray(12 + length)
    }
  }

  #frame (type: number, payload: Buffer): void {
    if (type === 5) this.#credit += payload.readUInt32LE()
    if (type === 3) {
      this.received += payload.length
      this.#socket.write(frame(5, 1, 0, u32(payload.length)))
    }
    if (type === 4) this.#socket.write(frame(7, 1, 0, field(12, 0)))
    while (this.#left > 0 && this.#credit >= 65_536) {
      this.#socket.write(this.#block)
      this.#left -= 65_536
      this.#credit -= 65_536
      if (this.#left === 0) this.#socket.write(Buffer.concat([frame(4, 1, 1), frame(4, 1, 2)]))
    }
  }
}
