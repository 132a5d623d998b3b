// A guest that breaks each rule in turn: the link ends with a reason, and nothing of it stays behind.
import { once } from 'node:events'
import t from 'tap'
import type { Test } from 'tap'
import { BIND_MS, DEFAULT_SLEEP_MS, REHEARSE_MS, WAKE_MS } from '../../../../plugins/guest/link/limits.ts'
import { isRefusal } from '../../../../plugins/instances/guest/guest-errors.ts'
import { limitMs, mainThreadMs } from '../../../helpers/processor-time.ts'
import { field, frame, hello, ScriptedGuest, u32 } from '../helpers/scripted-guest.ts'

const EVENTS = ['data', 'drain', 'end', 'close']

// The link's timers keep no process alive, and these streams are in memory only.
const alive = setInterval(() => {}, 1000)
t.teardown(() => { clearInterval(alive) })

function timers (): number { return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length }

/** The link has ended with this reason, its stream is destroyed, and neither listeners nor timers are left. */
async function endsWith (t: Test, guest: ScriptedGuest, reason: RegExp): Promise<void> {
  t.match(await guest.link.closed, reason)
  if (!guest.hostEnd.closed) await once(guest.hostEnd, 'close')
  for (const event of EVENTS) {
    // the link's own are methods; others are the stream's
    const ours = guest.hostEnd.listeners(event).filter((listener) => listener.name.startsWith('#on'))
    t.same(ours, [], `no ${event} listener`)
  }
  await t.rejects(guest.link.stat('/', { follow: true }), { code: 'guest_gone' })
}

t.test('a stream of frames that break the protocol', async (t) => {
  const cases: ReadonlyArray<readonly [string, Buffer, RegExp]> = [
    ['bad length', frame(3, 1, 1, Buffer.alloc(0), 2 ** 31), /announced a frame of/],
    ['unknown type', frame(99, 0, 0), /which a guest does not send/],
    ['HELLO twice', hello(), /HELLO twice/],
    ['event without a name', frame(8, 0, 0), /left out the name of an event/],
    ['exit without a code', frame(8, 0, 0, field(1, 'exited')), /left out the exit code/],
    ['endless fields', frame(8, 0, 0, Buffer.concat(Array.from({ length: 3000 }, (_, index) => field(1 + index % 255, 'x')))), /fields|twice/],
    ['huge field', frame(8, 0, 0, Buffer.from([1, 255, 255, 255, 255])), /more than its message has/]
  ]
  for (const [name, bytes, reason] of cases) {
    await t.test(name, async (t) => {
      const guest = new ScriptedGuest()
      await guest.link.hello
      guest.send(bytes)
      await endsWith(t, guest, reason)
    })
  }
})

t.test('a first word that is no HELLO', async (t) => {
  for (const words of [frame(8, 0, 0, field(1, 'started')), frame(7, 1, 0), frame(3, 1, 1, Buffer.from('x')), frame(1, 0, 0)]) {
    const guest = new ScriptedGuest({ firstWords: words })
    await t.rejects(guest.link.hello, { code: 'guest_gone' })
    await endsWith(t, guest, /did not begin with HELLO|left out/)
  }
})

t.test('channels that are misused', async (t) => {
  const cases: ReadonlyArray<readonly [string, (channel: number) => Buffer[], RegExp]> = [
    ['a stream that the channel does not have', (channel) => [frame(3, channel, 2, Buffer.from('x'))], /stream 2, which its channel does not have/],
    ['data after its end', (channel) => [frame(4, channel, 1), frame(3, channel, 1, Buffer.from('x'))], /after the end/],
    ['two ends', (channel) => [frame(4, channel, 1), frame(4, channel, 1)], /ended a stream twice/],
    ['credit where nothing is sent', (channel) => [frame(5, channel, 0, u32(1))], /without input/],
    ['more than the credit', (channel) => Array.from({ length: 5 }, () => frame(3, channel, 1, Buffer.alloc(65_536))), /more data than it had credit for/],
    ['an entry of 4 GiB', (channel) => [frame(3, channel, 1, u32(0xffff_ffff))], /announced an entry/],
    ['a path out of its folder', (channel) => [entry(channel, field(20, 'a/../../b'), field(26, 'dir'))], /leaves its folder/],
    ['an absolute path', (channel) => [entry(channel, field(20, '/etc/passwd'), field(26, 'dir'))], /leaves its folder/],
    ['an entry without a type', (channel) => [entry(channel, field(20, 'a'))], /left out the type/],
    ['a file without a size', (channel) => [entry(channel, field(20, 'a'), field(26, 'file'))], /left out the size/],
    ['a list that ends too early', (channel) => [frame(3, channel, 1, u32(10)), frame(4, channel, 1), frame(7, channel, 0)], /in the middle/]
  ]
  for (const [name, words, reason] of cases) {
    await t.test(name, async (t) => {
      const guest = new ScriptedGuest()
      const files = guest.link.get('/data', { follow: false })[Symbol.asyncIterator]()
      // The test of the credit must not read: what is read is granted again.
      const first = files.next()
      const channel = await guest.opened('get')
      guest.send(...words(channel))
      await t.rejects(first, { code: 'guest_gone' })
      await endsWith(t, guest, reason)
    })
  }
})

function entry (channel: number, ...fields: Buffer[]): Buffer {
  const payload = Buffer.concat(fields)
  return frame(3, channel, 1, Buffer.concat([u32(payload.length), payload]))
}

t.test('credit beyond any counter', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['cat'] })
  const channel = await guest.opened('exec')
  guest.send(frame(5, channel, 0, u32(0xffff_ffff)))
  await t.rejects(session.result, { code: 'guest_gone', message: /impossible amount of credit/ })
  t.ok(session.stdin.destroyed)
  t.ok(session.stdout.destroyed)
  await endsWith(t, guest, /impossible amount of credit/)
})

t.test('a result that makes no sense ends its channel too', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['true'] })
  guest.send(frame(7, await guest.opened('exec'), 0, field(12, 999)))
  await t.rejects(session.result, { code: 'guest_gone' })
  await endsWith(t, guest, /exit code 999/)
})

t.test('floods of frames for nobody', async (t) => {
  for (const one of [frame(0, 0, 0), frame(3, 77, 1, Buffer.from('x')), frame(7, 77, 0), frame(8, 0, 0, field(1, 'news'))]) {
    const guest = new ScriptedGuest()
    await guest.link.hello
    await guest.flood(one)
    await endsWith(t, guest, /useless frames/)
  }
})

t.test('a guest that never answers the sync', async (t) => {
  const guest = new ScriptedGuest({ answersSync: false, answerTimeoutMs: 700 })
  await t.rejects(guest.link.hello, { code: 'guest_gone', message: /did not answer within 700 ms/ })
  await endsWith(t, guest, /did not answer within 700 ms/)
})

t.test('a guest that talks for ever without answering the sync', async (t) => {
  const guest = new ScriptedGuest({ answersSync: false })
  const noise = Buffer.alloc(65_536, 0xb7)
  for (let sent = 0; sent <= 16 * 2 ** 20 && !guest.hostEnd.destroyed; sent += noise.length) {
    if (!guest.end.write(noise)) await Promise.race([once(guest.end, 'drain'), guest.link.closed])
  }
  await endsWith(t, guest, /without answering the sync/)
})

t.test('a guest that does not read', async (t) => {
  const guest = new ScriptedGuest()
  await guest.link.hello
  guest.end.pause()
  const big = 'x'.repeat(60_000)
  const sessions = Array.from({ length: 150 }, () => guest.link.exec({ argv: [big] }))
  await endsWith(t, guest, /does not read/)
  for (const session of sessions) await t.rejects(session.result, { code: 'guest_gone' })
})

t.test('a guest that answers nothing is asked no more, and what it owes takes little memory', async (t) => {
  const guest = new ScriptedGuest()
  await guest.link.hello
  const ask = async (count: number): Promise<number> => {
    let refused = 0
    for (let asked = 0; asked < count; asked++) {
      const session = guest.link.exec({ argv: ['x'] })
      session.cancel()
      session.result.catch((error: unknown) => { if (isRefusal(error) && error.errno === 11) refused++ })
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
    return refused
  }
  await ask(256)
  t.equal(await ask(5000), 5000)
  t.ok(guest.frames.filter((one) => one.type === 2).length <= 256)
  await t.rejects(guest.link.stat('/', { follow: true }), { code: 'guest_refused', errno: 11, message: /left 256 requests unanswered/ })
  await t.rejects(guest.link.connect(80, { signal: new AbortController().signal }), { code: 'guest_refused', errno: 11 })
  const stopping = guest.link.shutdown(0)
  guest.send(frame(7, await guest.opened('shutdown'), 0))
  await stopping
  guest.send(frame(7, 1, 0, field(12, 0)))
  await new Promise((resolve) => setTimeout(resolve, 20))
  const served = guest.link.stat('/', { follow: true })
  guest.send(frame(7, await guest.opened('stat'), 0, field(32, 0)))
  t.match(await served, { exists: false }, 'what is answered makes room')
  guest.link.close()
})

t.test('a stream that ends or fails', async (t) => {
  const ended = new ScriptedGuest()
  await ended.link.hello
  ended.end.end()
  await endsWith(t, ended, /guest side closed/)
  const failed = new ScriptedGuest()
  failed.hostEnd.destroy(new Error('EIO on the socket'))
  await endsWith(t, failed, /EIO on the socket/)
})

t.test('the server closes it', async (t) => {
  const guest = new ScriptedGuest()
  const run = guest.link.stat('/', { follow: true })
  guest.link.close()
  guest.link.close()
  await t.rejects(run, { code: 'guest_gone', message: /server closed it/ })
  await endsWith(t, guest, /server closed it/)
})

t.test('no bytes at all make the link throw: a good conversation with random damage', async (t) => {
  const good = Buffer.concat([
    frame(8, 0, 0, field(1, 'started')), frame(3, 1, 1, Buffer.from('out')), frame(3, 1, 2, Buffer.from('err')), frame(5, 1, 0, u32(10)), frame(4, 1, 1),
    entry(2, field(20, 'a'), field(26, 'file'), field(25, 4)), frame(3, 2, 1, Buffer.from('1234')), frame(7, 3, 0, Buffer.concat([field(32, 1), field(26, 'dir')])),
    frame(7, 1, 0, Buffer.concat([field(12, 1), field(13, 2), field(30, 'why')])), frame(7, 2, 0), frame(8, 0, 0, Buffer.concat([field(1, 'exited'), field(12, 0)]))
  ])
  let longestMs = 0
  for (let round = 0; round < 400; round++) {
    const beganMs = mainThreadMs()
    const guest = new ScriptedGuest()
    const session = guest.link.exec({ argv: ['x'] })
    const files = guest.link.get('/', { follow: true })[Symbol.asyncIterator]().next().then(() => {}, (error: unknown) => { t.match(error, { name: 'BerthError' }) })
    const stat = guest.link.stat('/', { follow: true }).then(() => {}, (error: unknown) => { t.match(error, { name: 'BerthError' }) })
    await guest.seen((one) => one.channel === 3)
    const bytes = Buffer.from(good)
    for (let hit = 0; hit <= round % 4; hit++) bytes[Math.floor(Math.random() * bytes.length)] = Math.floor(Math.random() * 256)
    guest.send(bytes)
    guest.end.end()
    t.notMatch(await guest.link.closed, /inside the server/, bytes.toString('hex'))
    await Promise.all([files, stat, session.result.catch(() => {})])
    longestMs = Math.max(longestMs, mainThreadMs() - beganMs)
  }
  t.ok(longestMs < limitMs(), `a conversation took ${longestMs} ms`)
})

t.test('no timer is left after all of this', async (t) => {
  const before = timers()
  const guests = Array.from({ length: 5 }, () => new ScriptedGuest({ answersSync: false }))
  for (const guest of guests) guest.link.close()
  await Promise.all(guests.map((guest) => guest.link.closed))
  t.equal(timers(), before)
})

t.test('a reader that throws does not take the server down', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['echo'] })
  session.stdout.on('data', () => { throw new Error('a bug of the reader') })
  guest.send(frame(3, await guest.opened('exec'), 1, Buffer.from('x')))
  await endsWith(t, guest, /failed inside the server/)
})

t.test('a guest that does not answer sleep, flush, wake, rehearse or bind is given up', async (t) => {
  const orders = {
    sleep: [(guest: ScriptedGuest) => guest.link.sleep({ timeoutMs: 10 }), 20],
    flush: [(guest: ScriptedGuest) => guest.link.flush(), 20 - DEFAULT_SLEEP_MS],
    wake: [(guest: ScriptedGuest) => guest.link.wake(), 20 - WAKE_MS],
    rehearse: [(guest: ScriptedGuest) => guest.link.rehearse(), 20 - REHEARSE_MS],
    bind: [(guest: ScriptedGuest) => guest.link.bind(), 20 - BIND_MS]
  } as const
  for (const [kind, [order, answerMarginMs]] of Object.entries(orders)) {
    const before = timers()
    const guest = new ScriptedGuest({ answerMarginMs })
    const answer = order(guest)
    answer.catch(() => {})
    await guest.opened(kind)
    await endsWith(t, guest, new RegExp(`did not answer "${kind}" within`))
    await t.rejects(answer, { code: 'guest_gone' })
    t.equal(timers(), before, 'no timer stays behind')
  }
})

t.test('an answer to sleep that cannot be', async (t) => {
  for (const [payload, reason] of [[field(30, 'a\0b'), /NUL/], [Buffer.concat([field(30, 'no'), field(31, 99_999)]), /error number/]] as const) {
    const guest = new ScriptedGuest()
    const answer = guest.link.sleep()
    answer.catch(() => {})
    guest.send(frame(7, await guest.opened('sleep'), 0, payload))
    await endsWith(t, guest, reason)
    await t.rejects(answer, { code: 'guest_gone' })
  }
})
