import t from 'tap'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Pump } from '../../../proxy/http/pump.ts'

const ALONE = { requests: 1, fault (error: unknown): void { throw error } }
const RECORD = Buffer.alloc(16 * 1024, 'r')

/** Remembers what was written, and takes the next only when it is let. */
class Target extends Writable {
  readonly writes: number[] = []
  readonly #waiting: (() => void)[] = []
  slow = false

  override _write (chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk.length)
    if (this.slow) this.#waiting.push(done)
    else done()
  }

  letGo (): void {
    this.slow = false
    for (const done of this.#waiting.splice(0)) done()
  }
}

function flowing (): Readable {
  return new Readable({ read () {} }).resume()
}

t.test('the records of a large body go on together', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  for (let count = 0; count < 8; count++) pump.send(RECORD)
  t.same(target.writes, [4 * RECORD.length, 4 * RECORD.length])
})

t.test('a record that none follows waits for no other', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  t.same(target.writes, [])
  await nextTurn()
  t.same(target.writes, [RECORD.length])
})

t.test('what is left of a batch goes as soon as the batch before it has gone', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  target.slow = true
  for (let count = 0; count < 5; count++) pump.send(RECORD)
  await nextTurn()
  t.same(target.writes, [4 * RECORD.length])
  target.letGo()
  await nextTurn()
  t.same(target.writes, [4 * RECORD.length, RECORD.length])
})

t.test('small pieces, such as the events of a stream, go at once, each by itself', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  for (let count = 0; count < 3; count++) pump.send(Buffer.from('data: 1\n\n'))
  t.same(target.writes, [9, 9, 9])
})

t.test('what was gathered goes before the end', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  pump.send(Buffer.from('the rest'))
  pump.flush()
  t.same(target.writes, [RECORD.length + 8])
  target.end()
  await once(target, 'finish')
  await nextTurn()
  t.same(target.writes, [RECORD.length + 8], 'and nothing comes after it')
})

t.test('what was sent does not change when its memory does, nor when the pump goes on', async (t) => {
  const received: Buffer[] = []
  const taken: (() => void)[] = []
  const target = new Writable({
    write (chunk: Buffer, _encoding, done) {
      received.push(chunk)
      taken.push(() => { received[received.indexOf(chunk)] = Buffer.from(chunk); done() })
    }
  })
  const pump = new Pump(flowing(), target, ALONE)
  const memory = Buffer.alloc(RECORD.length)
  const takeAll = async (): Promise<void> => { for (let next = taken.shift(); next !== undefined; next = taken.shift()) { next(); await nextTurn() } }
  for (let count = 0; count < 60; count++) {
    memory.fill(count)
    pump.send(count % 7 === 0 ? memory.subarray(0, 100) : memory)
    memory.fill(255)
    if (count % 11 === 0) await takeAll()
  }
  pump.flush()
  await nextTurn()
  await takeAll()
  const expected = Array.from({ length: 60 }, (_, count) => Buffer.alloc(count % 7 === 0 ? 100 : RECORD.length, count))
  t.ok(Buffer.concat(received).equals(Buffer.concat(expected)))
})

for (const { requests, mostKb } of [{ requests: 8, mostKb: 544 }, { requests: 9, mostKb: 160 }]) {
  t.test(`a source is held back while its target is slow, at ${mostKb} KiB for a guest of ${requests} requests, and goes on afterwards`, async (t) => {
    const source = flowing()
    const target = new Target()
    const pump = new Pump(source, target, { ...ALONE, requests })
    target.slow = true
    let sent = 0
    while (!source.isPaused() && sent < 100) {
      pump.send(RECORD)
      sent++
    }
    t.ok(sent * RECORD.length <= mostKb * 1024, `${sent} records wait`)
    target.letGo()
    await once(source, 'resume')
    await nextTurn()
    t.equal(target.writes.reduce((sum, bytes) => sum + bytes), sent * RECORD.length)
  })
}

t.test('a body of pieces of all sizes arrives whole and in order', async (t) => {
  const source = new Readable({ read () {} })
  const received = createHash('sha256')
  const expected = createHash('sha256')
  const target = new Writable({
    write (chunk: Buffer, _encoding, done) {
      received.update(chunk)
      setImmediate(done)
    }
  })
  const pump = new Pump(source, target, ALONE)
  source.on('data', (chunk: Buffer) => pump.send(chunk))
  source.on('end', () => {
    pump.flush()
    target.end()
  })
  for (let count = 0; count < 300; count++) {
    const piece = randomBytes(randomInt(1, 40_000))
    expected.update(piece)
    source.push(piece)
    if (count % 7 === 0) await nextTurn()
  }
  source.push(null)
  await once(target, 'finish')
  t.equal(received.digest('hex'), expected.digest('hex'))
})

t.test('a target that is gone is no failure', async (t) => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  target.destroy()
  await once(target, 'close')
  await nextTurn()
  t.same(target.writes, [])
})
