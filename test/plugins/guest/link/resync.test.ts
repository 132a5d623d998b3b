// Synchronising: the answer is found in any noise, and a guest that is in the middle of a frame is brought back.
import { duplexPair, type Duplex } from 'node:stream'
import { pino } from 'pino'
import t from 'tap'
import { StreamLink } from '../../../../plugins/guest/link/link.ts'
import { field, frame, hello } from '../helpers/scripted-guest.ts'

const MAGIC = Buffer.from('B7424552544831' + '0A', 'hex')

const alive = setInterval(() => {}, 1000)
t.teardown(() => { clearInterval(alive) })

/** A guest with the protocol's parser for what it receives, which may start in the middle of a frame. */
class ParsingGuest {
  readonly #end: Duplex
  #bytes: Buffer = Buffer.alloc(0)
  /** payload bytes of the frame that the last host had begun */
  #missing: number
  syncs = 0

  constructor (end: Duplex, missing: number) {
    this.#end = end
    this.#missing = missing
    end.on('error', () => {})
    end.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      while (this.#step());
    })
  }

  #step (): boolean {
    const skipped = Math.min(this.#missing, this.#bytes.length)
    this.#missing -= skipped
    this.#bytes = this.#bytes.subarray(skipped)
    if (this.#missing > 0 || this.#bytes.length < 12) return false
    if (this.#bytes.subarray(0, 8).equals(MAGIC)) return this.#sync()
    const length = this.#bytes.readUInt32LE(0)
    // Zeros and the start of the magic make headers that only their stream or reserved bytes give away.
    const type = this.#bytes.readUInt8(8)
    const stream = this.#bytes.readUInt8(9)
    const isValid = length <= 65_536 && type <= 8 && this.#bytes.readUInt16LE(10) === 0 && (type >= 3 && type <= 5 ? stream <= 2 : stream === 0)
    if (!isValid) return this.#search()
    if (this.#bytes.readUInt8(8) === 2) this.#end.write(frame(7, this.#bytes.readUInt32LE(4), 0, field(32, 0)))
    this.#bytes = this.#bytes.subarray(12)
    this.#missing = length
    return true
  }

  #sync (): boolean {
    if (this.#bytes.length < 24) return false
    this.syncs++
    this.#end.write(Buffer.concat([this.#bytes.subarray(0, 24), hello('running')]))
    this.#bytes = this.#bytes.subarray(24)
    return true
  }

  #search (): boolean {
    const at = this.#bytes.indexOf(MAGIC)
    this.#bytes = this.#bytes.subarray(at >= 0 ? at : Math.max(0, this.#bytes.length - MAGIC.length + 1))
    return at >= 0
  }
}

function open (missing: number): { readonly link: StreamLink, readonly guest: ParsingGuest, readonly end: Duplex } {
  const [hostEnd, end] = duplexPair()
  const link = new StreamLink(hostEnd, { log: pino({ level: 'silent' }), answerTimeoutMs: 20_000 })
  return { link, guest: new ParsingGuest(end, missing), end }
}

t.test('a link opened in the middle of any frame gets through', async (t) => {
  const lengths = [0, 1, 11, 12, 23, 24, 25, 47, 1000, 65_535, 65_536, ...Array.from({ length: 20 }, () => Math.floor(Math.random() * 65_536))]
  await Promise.all(lengths.map(async (missing) => {
    const { link } = open(missing)
    const stat = link.stat('/x', { follow: true })
    t.equal((await link.hello).phase, 'running', `${missing} bytes missing`)
    t.match(await stat, { exists: false }, 'what was asked meanwhile is answered')
    link.close()
  }))
})

t.test('a guest at a frame\'s start is asked once', async (t) => {
  const { link, guest } = open(0)
  await link.hello
  await new Promise((resolve) => setTimeout(resolve, 600))
  t.equal(guest.syncs, 1)
  link.close()
})

t.test('what the guest was saying before its answer is dropped, wherever it is cut', async (t) => {
  for (const size of [1, 7, 23, 24, 1000]) {
    const [hostEnd, end] = duplexPair()
    const link = new StreamLink(hostEnd, { log: pino({ level: 'silent' }), answerTimeoutMs: 20_000 })
    end.once('data', (sync: Buffer) => {
      const other = Buffer.concat([MAGIC, Buffer.alloc(16, 1)])
      const noise = Buffer.concat([frame(3, 9, 1, Buffer.alloc(300, 0xb7)), MAGIC, other, frame(1, 0, 0), sync.subarray(0, 20), sync.subarray(0, 24), hello()])
      for (let at = 0; at < noise.length; at += size) end.write(noise.subarray(at, at + size))
    })
    t.equal((await link.hello).kernel, '6.1.0-test', `in pieces of ${size}`)
    link.close()
  }
})

t.test('once a workload has been sent the guest is not asked again, however long it boots', async (t) => {
  const [hostEnd, end] = duplexPair()
  const link = new StreamLink(hostEnd, { log: pino({ level: 'silent' }), answerTimeoutMs: 20_000 })
  const run = link.run({ argv: ['x'], env: {}, cwd: '/', user: '', hostname: 'h', mounts: [], agent: true })
  await new Promise((resolve) => setTimeout(resolve, 700))
  const guest = new ParsingGuest(end, 0)
  await link.hello
  await run
  t.equal(guest.syncs, 1)
  link.close()
})
