// A port of the guest from the host's side: which channels wait, what a connection is, and what a hostile guest can do with them.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import t from 'tap'
import type { GuestListener } from '../../../../plugins/guest/contract.ts'
import { field, frame, readField, ScriptedGuest, u32, type SeenFrame } from '../helpers/scripted-guest.ts'

const [DATA, EOF, CREDIT, CONTROL, RESULT] = [3, 4, 5, 6, 7] as const
const BEGUN = (channel: number): Buffer => frame(DATA, channel, 1)
const refusal = (channel: number, errno: number): Buffer => frame(RESULT, channel, 0, Buffer.concat([field(30, 'no'), field(31, errno)]))

// The link's timers keep no process alive, and these streams are in memory only.
const alive = setInterval(() => {}, 1000)
t.teardown(() => { clearInterval(alive) })

interface Listening { readonly guest: ScriptedGuest, readonly listener: GuestListener, readonly connections: Duplex[], readonly port: number }

/** The guest listens, and channels wait. */
async function listening (): Promise<Listening> {
  const guest = new ScriptedGuest()
  const connections: Duplex[] = []
  const made = guest.link.listen(5000, (connection) => { connections.push(connection) })
  const port = await guest.opened('listen')
  guest.send(BEGUN(port))
  const listener = await made
  await accepts(guest, 4)
  return { guest, listener, connections, port }
}

const isAccept = ({ type, payload }: SeenFrame): boolean => type === 2 && readField(payload, 1)?.toString() === 'accept'

/** The numbers of the channels that were opened for connections, when there are that many. */
async function accepts (guest: ScriptedGuest, count: number): Promise<number[]> {
  await guest.seen(() => guest.frames.filter(isAccept).length >= count)
  return guest.frames.filter(isAccept).map(({ channel }) => channel)
}

/** Whatever was to be said by now has been said: all of it is in this process. */
async function settle (): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => { setImmediate(resolve) })
}

/** What it says until its end. Unlike an iterator this leaves the other half open. */
async function read (connection: Duplex): Promise<string> {
  const pieces: Buffer[] = []
  connection.on('data', (piece: Buffer) => { pieces.push(piece) })
  await once(connection, 'end')
  return Buffer.concat(pieces).toString()
}

t.test('a few channels wait, and another one for each that is taken, up to a limit', async (t) => {
  const { guest, connections, listener } = await listening()
  t.same(guest.frames.filter(isAccept).map(({ payload }) => readField(payload, 54)?.readUInt32LE()), [5000, 5000, 5000, 5000])
  for (let taken = 1; taken <= 32; taken++) {
    const channel = (await accepts(guest, Math.min(32, taken + 3)))[taken - 1] ?? 0
    guest.send(BEGUN(channel))
    await settle()
    if (connections.length !== taken) throw new Error(`${connections.length} connections of ${taken}`)
  }
  t.equal(guest.frames.filter(isAccept).length, 32, 'the rest of the 64 is for others')
  const [first = 0] = await accepts(guest, 1)
  connections[0]?.resume().end()
  await settle()
  guest.send(frame(EOF, first, 1), frame(RESULT, first, 0))
  t.equal((await accepts(guest, 33)).length, 33, 'one that has ended makes room')
  listener.close()
  listener.close()
  t.match(await guest.seen(({ type }) => type === CONTROL), { channel: 1 })
  await settle()
  t.equal(guest.frames.filter(({ type }) => type === CONTROL).length, 1)
  guest.link.close()
})

t.test('a connection half-closes in both orders', async (t) => {
  const { guest, connections } = await listening()
  const [one = 0, two = 0] = await accepts(guest, 2)
  guest.send(BEGUN(one), BEGUN(two))
  await guest.seen(() => connections.length === 2)
  const [first, second] = connections
  if (first === undefined || second === undefined) throw new Error('no connections')
  guest.send(frame(DATA, one, 1, Buffer.from('que')), frame(DATA, one, 1, Buffer.from('stion')), frame(EOF, one, 1))
  t.equal(await read(first), 'question')
  t.equal(first.writable, true)
  first.end('answer')
  t.equal((await guest.seen(({ type, channel }) => type === DATA && channel === one)).payload.toString(), 'answer')
  await guest.seen(({ type, channel }) => type === EOF && channel === one)
  guest.send(frame(RESULT, one, 0))
  second.end('first')
  await guest.seen(({ type, channel }) => type === EOF && channel === two)
  guest.send(frame(DATA, two, 1, Buffer.from('late')), frame(EOF, two, 1), frame(RESULT, two, 0))
  t.equal(await read(second), 'late')
  t.notOk(guest.frames.some(({ type }) => type === CONTROL), 'nothing was cancelled')
  guest.link.close()
})

t.test('what nobody reads is not granted, and what the guest does not take is not sent', async (t) => {
  const { guest, connections } = await listening()
  const [channel = 0] = await accepts(guest, 1)
  guest.send(BEGUN(channel))
  await guest.seen(() => connections.length === 1)
  const [connection] = connections
  if (connection === undefined) throw new Error('no connection')
  for (let sent = 0; sent < 262_144; sent += 65_536) guest.send(frame(DATA, channel, 1, Buffer.alloc(65_536)))
  await settle()
  t.notOk(guest.frames.some(({ type }) => type === CREDIT), 'nothing is granted yet')
  connection.resume()
  t.ok((await guest.seen(({ type }) => type === CREDIT)).payload.readUInt32LE() >= 131_072)
  const sent = (): number => guest.frames.filter((one) => one.type === DATA && one.channel === channel).reduce((sum, { payload }) => sum + payload.length, 0)
  for (let count = 0; count < 6; count++) connection.write(Buffer.alloc(65_536))
  await settle()
  t.equal(sent(), 262_144, 'as much as the guest takes')
  t.equal(connection.writableNeedDrain, true, 'its writer is held back')
  guest.send(frame(CREDIT, channel, 0, u32(1000)))
  await guest.seen(() => sent() === 263_144)
  guest.link.close()
})

t.test('one that is cut off fails, and one that is destroyed is cancelled', async (t) => {
  const { guest, connections } = await listening()
  const [one = 0, two = 0] = await accepts(guest, 2)
  guest.send(BEGUN(one), BEGUN(two))
  await guest.seen(() => connections.length === 2)
  const [first, second] = connections
  if (first === undefined) throw new Error('no connections')
  const failed = read(first)
  guest.send(frame(DATA, one, 1, Buffer.from('half')), refusal(one, 104))
  await t.rejects(failed, { code: 'guest_refused', errno: 104 })
  second?.destroy()
  t.equal((await guest.seen(({ type }) => type === CONTROL)).channel, two)
  guest.send(frame(DATA, two, 1, Buffer.from('crossing')), refusal(two, 125))
  await settle()
  t.match(await accepts(guest, 6), { length: 6 }, 'others take their places')
  guest.link.close()
})

t.test('a port that is taken is said', async (t) => {
  const guest = new ScriptedGuest()
  const made = guest.link.listen(5000, () => {})
  guest.send(refusal(await guest.opened('listen'), 98))
  await t.rejects(made, { code: 'guest_refused', errno: 98 })
  await settle()
  t.notOk(guest.frames.some(isAccept))
  guest.link.close()
})

t.test('after its end nobody waits, and what still comes is turned away', async (t) => {
  const { guest, listener, connections, port } = await listening()
  const [one = 0, two = 0, three = 0, four = 0] = await accepts(guest, 4)
  guest.send(BEGUN(one))
  await guest.seen(() => connections.length === 1)
  const [kept] = connections
  listener.close()
  guest.send(BEGUN(two), refusal(three, 125), refusal(four, 125), frame(RESULT, port, 0))
  t.equal((await guest.seen(({ type, channel }) => type === CONTROL && channel === two)).channel, two)
  t.equal(connections.length, 1)
  t.equal(kept?.destroyed, false, 'connections that are there go on')
  await settle()
  t.equal(guest.frames.filter(isAccept).length, 5, 'the fifth was opened for the first connection')
  guest.link.close()
})

t.test('a guest without a channel left is asked again later, and not at once', async (t) => {
  const { guest } = await listening()
  for (const channel of await accepts(guest, 4)) guest.send(refusal(channel, 11))
  await settle()
  t.equal(guest.frames.filter(isAccept).length, 4)
  t.equal((await accepts(guest, 8)).length, 8)
  guest.link.close()
})

t.test('with the link everything ends', async (t) => {
  const { guest, listener, connections } = await listening()
  const [channel = 0] = await accepts(guest, 1)
  guest.send(BEGUN(channel))
  await guest.seen(() => connections.length === 1)
  const [connection] = connections
  if (connection === undefined) throw new Error('no connection')
  const closed = new Promise((resolve) => { connection.once('close', resolve) })
  guest.link.close()
  await closed
  t.match(connection.errored, { code: 'guest_gone' })
  listener.close()
  await t.rejects(guest.link.listen(1, () => {}), { code: 'guest_gone' })
})

t.test('a guest that breaks the rules of connections loses the link', async (t) => {
  const cases: ReadonlyArray<readonly [string, (channel: number) => Buffer[], RegExp]> = [
    ['data of a connection that is none', (channel) => [frame(DATA, channel, 1, Buffer.from('x'))], /not begun/],
    ['the end of one that is none', (channel) => [frame(EOF, channel, 1)], /not begun/],
    ['credit for one that is none', (channel) => [frame(CREDIT, channel, 0, u32(1))], /not begun/],
    ['a good end of one that is none', (channel) => [frame(RESULT, channel, 0)], /not begun|before its end/],
    ['a good end before its end', (channel) => [BEGUN(channel), frame(RESULT, channel, 0)], /before its end/],
    ['more than is granted', (channel) => [BEGUN(channel), ...Array.from({ length: 5 }, () => frame(DATA, channel, 1, Buffer.alloc(65_536)))], /more data than/],
    ['data after the end', (channel) => [BEGUN(channel), frame(EOF, channel, 1), frame(DATA, channel, 1, Buffer.from('x'))], /after the end/],
    ['another stream', (channel) => [BEGUN(channel), frame(DATA, channel, 2, Buffer.from('x'))], /stream 2/],
    ['absurd credit', (channel) => [BEGUN(channel), frame(CREDIT, channel, 0, u32(0x7fff_ffff))], /impossible amount/]
  ]
  for (const [name, bytes, reason] of cases) {
    await t.test(name, async (t) => {
      const { guest } = await listening()
      const [channel = 0] = await accepts(guest, 1)
      guest.send(...bytes(channel))
      t.match(await guest.link.closed, reason)
    })
  }
  await t.test('data of the port itself', async (t) => {
    const { guest, port } = await listening()
    guest.send(frame(DATA, port, 1, Buffer.from('x')))
    t.match(await guest.link.closed, /stream 1, which its channel does not have/)
  })
  await t.test('empty frames without end', async (t) => {
    const { guest } = await listening()
    const [channel = 0] = await accepts(guest, 1)
    await guest.flood(BEGUN(channel))
    t.match(await guest.link.closed, /useless frames/)
  })
})

t.test('a call is there once the guest says so, is refused by it, or is given up by the host', async (t) => {
  const guest = new ScriptedGuest()
  const { signal } = new AbortController()
  const calling = guest.link.connect(80, { address: '10.1.0.5', signal })
  const channel = await guest.opened('connect')
  const [asked] = guest.frames.filter(({ type, channel: of }) => type === 2 && of === channel)
  t.equal(readField(asked?.payload ?? Buffer.alloc(0), 44)?.toString(), '10.1.0.5')
  t.equal(readField(asked?.payload ?? Buffer.alloc(0), 54)?.readUInt32LE(), 80)
  guest.send(BEGUN(channel), frame(DATA, channel, 1, Buffer.from('hello')), frame(EOF, channel, 1))
  const connection = await calling
  connection.end('bye')
  t.equal(await read(connection), 'hello')
  await guest.seen(({ type, channel: of, payload }) => type === DATA && of === channel && payload.toString() === 'bye')
  guest.send(frame(RESULT, channel, 0))

  const refused = guest.link.connect(81, { signal })
  guest.send(refusal(channel + 1, 111))
  await t.rejects(refused, { code: 'guest_refused', errno: 111 })

  const patience = new AbortController()
  const given = guest.link.connect(82, { signal: patience.signal })
  patience.abort(new Error('enough'))
  await t.rejects(given, { message: 'enough' })
  await guest.seen(({ type, channel: of }) => type === CONTROL && of === channel + 2)
  guest.send(BEGUN(channel + 2), refusal(channel + 2, 125))
  await settle()
  guest.link.close()
  await t.rejects(guest.link.connect(83, { signal }), { code: 'guest_gone' })
})
