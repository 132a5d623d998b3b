// What each call says to the guest, and what the caller gets for each answer.
import { text } from 'node:stream/consumers'
import t from 'tap'
import type { GuestExit } from '../../../../plugins/guest/contract.ts'
import { field, frame, hello, readField, refusal, ScriptedGuest } from '../helpers/scripted-guest.ts'

const workload = { argv: ['/bin/true'], env: { A: '1' }, cwd: '/', user: '', hostname: 'h', mounts: [], agent: true }

t.test('HELLO gives the guest\'s facts', async (t) => {
  const guest = new ScriptedGuest()
  t.same(await guest.link.hello, {
    protocol: 1, phase: 'waiting', kernel: '6.1.0-test', bootId: 'boot-1', memoryTotalBytes: 268435456, uptimeMs: 1234, agent: true
  })
  guest.link.close()
})

t.test('a workload goes out behind the sync, without waiting for its answer', async (t) => {
  const guest = new ScriptedGuest({ answersSync: false })
  const run = guest.link.run({ ...workload, mounts: [{ path: '/v', device: '/dev/vdc', readonly: true }] })
  const bytes: Buffer[] = []
  for await (const chunk of guest.end) {
    bytes.push(chunk)
    if (Buffer.concat(bytes).length > 24 + 12) break
  }
  const sent = Buffer.concat(bytes).subarray(24)
  t.equal(sent.readUInt8(8), 2)
  const payload = sent.subarray(12)
  t.equal(readField(payload, 1)?.toString(), 'run')
  t.equal(readField(payload, 5)?.toString(), 'A=1')
  t.equal(readField(payload, 16)?.length, 64, 'entropy')
  const realtimeMs = Number((readField(payload, 15)?.readBigUInt64LE() ?? 0n) / 1_000_000n)
  t.ok(Math.abs(realtimeMs - Date.now()) < 60_000, 'the clock')
  const mount = readField(payload, 17) ?? Buffer.alloc(0)
  t.equal(readField(mount, 39)?.toString(), '/dev/vdc')
  guest.link.close()
  await t.rejects(run, { code: 'guest_gone' })
})

t.test('a workload carries its network, and whether its machine is a new one', async (t) => {
  const guest = new ScriptedGuest()
  guest.link.run({ ...workload, newMachine: true, network: { mac: '02:00:00:00:00:01', address: '10.1.0.5/24', gateway: '10.1.0.1', dns: ['10.1.0.1', '10.1.0.2'] } }).catch(() => {})
  const { payload } = await guest.seen((one) => one.type === 2)
  t.equal(readField(payload, 48)?.readBigUInt64LE(), 1n)
  const network = readField(payload, 42) ?? Buffer.alloc(0)
  t.same([43, 44, 45, 46].map((tag) => readField(network, tag)?.toString()), ['02:00:00:00:00:01', '10.1.0.5/24', '10.1.0.1', '10.1.0.1'])
  t.ok(network.includes(field(46, '10.1.0.2')), 'every name server')
  guest.link.close()
})

const certificate = '-----BEGIN CERTIFICATE-----\nT1dO\n-----END CERTIFICATE-----\n'
const joined = (pieces: ReadonlyArray<{ readonly payload: Buffer }>) => Buffer.concat(pieces.map(({ payload }) => readField(payload, 52) ?? Buffer.alloc(0)))

t.test('what a guest is to trust goes before its workload, in pieces that fit into frames', async (t) => {
  const guest = new ScriptedGuest()
  const bundle = `${'é'.repeat(100_000)}${certificate}`
  const running = guest.link.run({ ...workload, trust: { certificate, subjectHash: '0123abcd', bundle } })
  const { payload, channel } = await guest.opened('run').then((id) => guest.seen((one) => one.channel === id))
  const pieces = guest.frames.filter((one) => one.type === 2 && readField(one.payload, 1)?.toString() === 'trust')
  t.ok(pieces.length >= 4 && pieces.every((one) => one.channel < channel && one.payload.length <= 65_536))
  t.same(pieces.map((one) => readField(one.payload, 50)?.toString()), pieces.map((_one, index) => index === 0 ? certificate : undefined), 'the first has the certificate')
  t.equal(readField(pieces[0]?.payload ?? Buffer.alloc(0), 51)?.toString(), '0123abcd')
  t.equal(joined(pieces).toString(), bundle)
  t.equal(Number(readField(payload, 49)?.readBigUInt64LE()), Buffer.byteLength(bundle), 'the workload counts on all of it')
  for (const piece of pieces) guest.send(frame(7, piece.channel, 0))
  guest.send(frame(7, channel, 0))
  await running
  guest.link.close()
})

t.test('a guest that refuses a piece of the trust has refused the workload, with its first reason', async (t) => {
  const guest = new ScriptedGuest()
  const running = guest.link.run({ ...workload, trust: { certificate, subjectHash: '0123abcd', bundle: '' } })
  const run = await guest.opened('run')
  guest.send(frame(7, await guest.opened('trust'), 0, refusal('out of memory', 12)), frame(7, run, 0, refusal('it has not come whole', 22)))
  await t.rejects(running, { code: 'guest_refused', errno: 12, message: 'out of memory' })
  guest.link.close()
})

t.test('trust that no guest would take is refused before anything is sent', async (t) => {
  const guest = new ScriptedGuest()
  const good = { certificate, subjectHash: '0123abcd', bundle: certificate }
  const bad = [
    { ...good, certificate: certificate + certificate }, { ...good, certificate: `# x\n${certificate}` }, { ...good, certificate: certificate.replace('T1dO', 'T1dO'.repeat(4096)) },
    { ...good, subjectHash: '../../ab' }, { ...good, subjectHash: '0123ABCD' }, { ...good, bundle: 'x'.repeat(2 ** 20 + 1) }, { ...good, bundle: 'a\0b' }
  ]
  for (const trust of bad) await t.rejects(guest.link.run({ ...workload, trust }), { code: 'guest_refused', errno: 22 })
  t.equal(guest.frames.length, 0)
  const largest = guest.link.run({ ...workload, trust: { ...good, bundle: 'x'.repeat(2 ** 20) } })
  const run = await guest.opened('run')
  t.equal(joined(guest.frames).length, 2 ** 20, 'the largest bundle goes out')
  guest.send(frame(7, run, 0, refusal('no', 5)))
  await t.rejects(largest, { code: 'guest_refused', errno: 5 })
  guest.link.close()
})

t.test('a workload without trust counts on none', async (t) => {
  const guest = new ScriptedGuest()
  guest.link.run(workload).catch(() => {})
  const { payload } = await guest.seen((one) => one.type === 2)
  t.equal(readField(payload, 49), undefined)
  guest.link.close()
})

t.test('sleep says what to do and within which time', async (t) => {
  const guest = new ScriptedGuest()
  const asleep = guest.link.sleep({ sync: false, timeoutMs: 700 })
  const { payload, channel } = await guest.seen((one) => one.type === 2)
  t.equal(readField(payload, 1)?.toString(), 'sleep')
  t.same([47, 11].map((tag) => Number(readField(payload, tag)?.readBigUInt64LE())), [0, 700])
  guest.send(frame(7, channel, 0))
  await asleep
  const again = guest.link.sleep()
  const plain = await guest.seen((one) => one.type === 2 && one.channel !== channel)
  t.equal(readField(plain.payload, 47), undefined, 'the guest writes its disks unless it is told not to')
  guest.send(frame(7, plain.channel, 0, refusal('the program could not be frozen in time', 110)))
  await t.rejects(again, { code: 'guest_refused', errno: 110, message: 'the program could not be frozen in time' })
  guest.link.close()
})

t.test('wake carries the time of the moment at which the guest is there, fresh entropy, and an identity', async (t) => {
  const guest = new ScriptedGuest({ firstWords: Buffer.alloc(0) })
  const awake = guest.link.wake({ hostname: 'clone', newMachine: true, network: { address: '10.1.0.6/24' } })
  await new Promise((resolve) => setTimeout(resolve, 300))
  const saidHelloMs = Date.now()
  guest.send(hello('asleep'))
  const { payload, channel } = await guest.seen((one) => one.type === 2)
  t.equal(readField(payload, 1)?.toString(), 'wake')
  t.equal(readField(payload, 14)?.toString(), 'clone')
  t.ok(Number((readField(payload, 15)?.readBigUInt64LE() ?? 0n) / 1_000_000n) >= saidHelloMs, 'the clock has not aged while the guest was not there')
  t.equal(readField(readField(payload, 42) ?? Buffer.alloc(0), 44)?.toString(), '10.1.0.6/24')
  guest.send(frame(7, channel, 0))
  await awake
  guest.link.wake().catch(() => {})
  const second = await guest.seen((one) => one.type === 2 && one.channel !== channel)
  t.notOk(readField(second.payload, 16)?.equals(readField(payload, 16) ?? Buffer.alloc(0)), 'no two get the same entropy')
  t.same([14, 42, 48].map((tag) => readField(second.payload, tag)), [undefined, undefined, undefined], 'what is not named is not sent')
  guest.link.close()
})

t.test('rehearse carries time, fresh entropy and the network that it is given, and rejects with the guest\'s reason', async (t) => {
  const guest = new ScriptedGuest()
  const saidHelloMs = Date.now()
  const rehearsed = guest.link.rehearse()
  const { payload, channel } = await guest.opened('rehearse').then((id) => guest.seen((one) => one.channel === id))
  t.ok(Number((readField(payload, 15)?.readBigUInt64LE() ?? 0n) / 1_000_000n) >= saidHelloMs)
  t.equal(readField(payload, 16)?.length, 64)
  t.same([14, 42, 48].map((tag) => readField(payload, tag)), [undefined, undefined, undefined])
  guest.send(frame(7, channel, 0))
  await rehearsed
  const refused = guest.link.rehearse({ network: { mac: '02:00:00:00:00:01', address: '10.1.0.5/24', gateway: '10.1.0.1', dns: ['10.1.0.1'] } })
  const second = await guest.seen((one) => one.type === 2 && one.channel !== channel)
  t.same([43, 44, 45, 46].map((tag) => readField(readField(second.payload, 42) ?? Buffer.alloc(0), tag)?.toString()), ['02:00:00:00:00:01', '10.1.0.5/24', '10.1.0.1', '10.1.0.1'], 'the network of the start, when it is named')
  guest.send(frame(7, second.channel, 0, refusal('this guest has its workload already', 114)))
  await t.rejects(refused, { code: 'guest_refused', errno: 114, message: 'this guest has its workload already' })
  guest.link.close()
})

t.test('bind resolves when the disks have their driver, and rejects with the guest\'s reason', async (t) => {
  const guest = new ScriptedGuest()
  const done = guest.link.bind()
  guest.send(frame(7, await guest.opened('bind'), 0))
  await done
  const refused = guest.link.bind()
  const { channel } = await guest.seen((one) => one.type === 2 && one.channel > 1)
  guest.send(frame(7, channel, 0, refusal('this guest has its workload already', 114)))
  await t.rejects(refused, { code: 'guest_refused', errno: 114 })
  guest.link.close()
})

t.test('a guest that is asleep has been started', async (t) => {
  const guest = new ScriptedGuest({ firstWords: hello('asleep') })
  await new Promise<void>((resolve) => { guest.link.onStarted(resolve) })
  t.equal((await guest.link.hello).phase, 'asleep')
  guest.link.close()
})

t.test('run resolves when the program has started, and rejects with the guest\'s reason', async (t) => {
  const guest = new ScriptedGuest()
  const good = guest.link.run(workload)
  guest.send(frame(7, await guest.opened('run'), 0))
  await good
  const bad = guest.link.run(workload)
  const second = await guest.seen((one) => one.type === 2 && one.channel === 2)
  guest.send(frame(7, second.channel, 0, Buffer.concat([refusal('no such program', 2), field(12, 127)])))
  await t.rejects(bad, { code: 'guest_refused', message: 'no such program', errno: 2, exitCode: 127 })
  guest.link.close()
})

t.test('a command that is too large for a frame is refused on this side', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'.repeat(70_000)] })
  await t.rejects(session.result, { code: 'guest_refused', errno: 7, message: /65536 fit/ })
  guest.link.close()
})

t.test('a size that no host can count to is no fault: stat answers, and a command beside it goes on', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  const channel = await guest.opened('exec')
  const facts = guest.link.stat('/dev/shm/x', { follow: true })
  guest.send(frame(7, await guest.opened('stat'), 0, Buffer.concat([field(32, 1), field(26, 'file'), field(21, 0o644), field(25, 7n * 2n ** 60n), field(22, 0xffff_ffff), field(24, 2n ** 64n - 1n)])))
  t.match(await facts, { exists: true, type: 'file', sizeBytes: Number.MAX_SAFE_INTEGER, uid: 0xffff_ffff, mtime: -1 })
  guest.send(frame(7, channel, 0, field(12, 3)))
  t.same(await session.result, { exitCode: 3, signal: 0 })
  guest.link.close()
})

t.test('exec carries input, both outputs and the result', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['sort', '-r'], env: { L: 'C' }, cwd: '/w', user: '5:6', tty: { rows: 24, cols: 80 }, timeoutMs: 9 })
  const channel = await guest.opened('exec')
  const open = await guest.seen((one) => one.type === 2)
  t.same([8, 9, 10, 11].map((tag) => Number(readField(open.payload, tag)?.readBigUInt64LE())), [1, 24, 80, 9])
  session.stdin.end('a\nb\n')
  t.equal((await guest.seen((one) => one.type === 3)).payload.toString(), 'a\nb\n')
  await guest.seen((one) => one.type === 4 && one.stream === 0)
  await session.resize(30, 100)
  await session.signal(2)
  session.cancel()
  const controls = ['resize', 'signal', 'cancel']
  for (const op of controls) t.ok(await guest.seen((one) => one.type === 6 && readField(one.payload, 1)?.toString() === op), op)
  guest.send(frame(3, channel, 1, Buffer.from('b\na\n')), frame(3, channel, 2, Buffer.from('oops')), frame(4, channel, 1), frame(4, channel, 2),
    frame(7, channel, 0, Buffer.concat([field(12, 137), field(13, 9)])))
  t.equal(await text(session.stdout), 'b\na\n')
  t.equal(await text(session.stderr), 'oops')
  t.same(await session.result, { exitCode: 137, signal: 9 })
  guest.link.close()
})

t.test('the result of exec waits for those who read, and not for those who do not', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  const channel = await guest.opened('exec')
  const seen: string[] = []
  session.stdout.pause()
  guest.send(frame(3, channel, 1, Buffer.alloc(100_000 - 65_536, 1)), frame(3, channel, 1, Buffer.alloc(65_536, 2)), frame(7, channel, 0, field(12, 0)))
  const result = session.result.then(() => { seen.push('result') })
  session.stdout.on('end', () => { seen.push('end') })
  await new Promise((resolve) => setImmediate(resolve))
  t.same(seen, [], 'stdout has not been read')
  session.stdout.resume()
  await result
  t.same(seen, ['end', 'result'])
  guest.link.close()
})

t.test('an exec that the guest refuses is told from a command that fails', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['x'] })
  guest.send(frame(7, await guest.opened('exec'), 0, refusal('the guest agent is disabled for this instance', 95)))
  await t.rejects(session.result, { code: 'guest_refused', errno: 95 })
  guest.link.close()
})

t.test('input written after the command has ended is dropped', async (t) => {
  const guest = new ScriptedGuest()
  const session = guest.link.exec({ argv: ['true'] })
  guest.send(frame(7, await guest.opened('exec'), 0, field(12, 0)))
  await session.result
  session.stdin.write('late')
  await new Promise<void>((resolve) => session.stdin.end('later', () => { resolve() }))
  t.notOk(guest.frames.some((one) => one.type === 3 || one.type === 4))
  guest.link.close()
})

t.test('shutdown says how long and with which signal', async (t) => {
  const guest = new ScriptedGuest()
  const done = guest.link.shutdown(5000, 3)
  const open = await guest.seen((one) => one.type === 2)
  t.equal(Number(readField(open.payload, 19)?.readBigUInt64LE()), 5000)
  t.equal(Number(readField(open.payload, 13)?.readBigUInt64LE()), 3)
  guest.send(frame(7, 1, 0))
  await done
  guest.link.close()
})

t.test('events reach those who listen, and those who come later', async (t) => {
  const guest = new ScriptedGuest()
  await guest.link.hello
  const calls: string[] = []
  guest.link.onStarted(() => { throw new Error('a listener\'s own fault') })
  guest.link.onStarted(() => { calls.push('started') })
  guest.link.onStarted(() => { calls.push('never') })()
  guest.send(frame(8, 0, 0, field(1, 'started')), frame(8, 0, 0, field(1, 'started')))
  const exit = await new Promise<GuestExit>((resolve) => {
    guest.link.onExited(resolve)
    guest.send(frame(8, 0, 0, Buffer.concat([field(1, 'exited'), field(12, 137), field(13, 9), field(37, 1), field(30, 'out of memory')])))
  })
  t.same(exit, { exitCode: 137, signal: 9, oom: true, error: 'out of memory' })
  t.same(calls, ['started'])
  t.same(await new Promise((resolve) => guest.link.onExited(resolve)), exit)
  guest.link.close()
})

t.test('a HELLO that says running or exiting counts as the event', async (t) => {
  const running = new ScriptedGuest({ firstWords: hello('running') })
  await new Promise<void>((resolve) => running.link.onStarted(resolve))
  running.link.close()
  const exiting = new ScriptedGuest({ firstWords: hello('exiting', field(12, 3), field(13, 0)) })
  t.same(await new Promise((resolve) => exiting.link.onExited(resolve)), { exitCode: 3, signal: 0, oom: false })
  exiting.link.close()
})
