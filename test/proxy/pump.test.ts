import t from 'tap'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Pump } from '../../proxy/streams/pump.ts'

const ALONE = { size: 1 }
const RECORD = Buffer.alloc(16 * 1024, 'r')

/** Remembers how many pieces each write had, and takes the next only when it is let. */
class Target extends Writable {
  readonly writes: number[] = []
  readonly #waiting: (() => void)[] = []
  slow = false

  override _write (_chunk: Buffer, _encoding: string, done: () => void): void {
    this.#take(1, done)
  }

  override _writev (chunks: unknown[], done: () => void): void {
    this.#take(chunks.length, done)
  }

  letGo (): void {
    this.slow = false
    for (const done of this.#waiting.splice(0)) done()
  }

  #take (pieces: number, done: () => void): void {
    this.writes.push(pieces)
    if (this.slow) this.#waiting.push(done)
    else done()
  }
}

function flowing (): Readable {
  return new Readable({ read () {} }).resume()
}

t.test('the records of a large body go on together', async t => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  for (let count = 0; count < 4; count++) pump.send(RECORD)
  t.same(target.writes, [4])
})

t.test('a record that none follows waits for no other', async t => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  t.same(target.writes, [])
  await nextTurn()
  t.same(target.writes, [1])
})

t.test('small pieces, such as the events of a stream, go at once, each by itself', async t => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  for (let count = 0; count < 3; count++) pump.send(Buffer.from('data: 1\n\n'))
  t.same(target.writes, [1, 1, 1])
})

t.test('what was gathered goes before the end', async t => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  pump.send(Buffer.from('the rest'))
  pump.flush()
  t.same(target.writes, [2])
  target.end()
  await once(target, 'finish')
  await nextTurn()
  t.same(target.writes, [2], 'and nothing comes after it')
})

for (const { requests, mostKb } of [{ requests: 8, mostKb: 544 }, { requests: 9, mostKb: 160 }]) {
  t.test(`a source is held back while its target is slow, at ${mostKb} KiB for a guest of ${requests} requests, and goes on afterwards`, async t => {
    const source = flowing()
    const target = new Target()
    const pump = new Pump(source, target, { size: requests })
    target.slow = true
    let sent = 0
    while (!source.isPaused() && sent < 100) {
      pump.send(RECORD)
      sent++
    }
    t.ok(target.writableLength <= mostKb * 1024, `${target.writableLength} bytes wait`)
    target.letGo()
    await once(source, 'resume')
    t.equal(target.writes.reduce((sum, pieces) => sum + pieces), sent)
  })
}

t.test('a body of pieces of all sizes arrives whole and in order', async t => {
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

t.test('a target that is gone is no failure', async t => {
  const target = new Target()
  const pump = new Pump(flowing(), target, ALONE)
  pump.send(RECORD)
  target.destroy()
  await once(target, 'close')
  await nextTurn()
  t.same(target.writes, [])
})
