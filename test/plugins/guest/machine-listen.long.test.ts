// A port of a real guest's loopback: its programs talk through it to a server of the host, without a network device.
import { createHash, randomBytes, type Hash } from 'node:crypto'
import { createServer } from 'node:http'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import t from 'tap'
import type { GuestLink } from '../../../plugins/guest/contract.ts'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { makeRoot, startMachine, testFolder } from './helpers/machine.ts'

const TEN_MB = 10_000_000
const WORKLOAD = { argv: ['/bin/sleep', '100000'], env: {}, cwd: '/', user: '', hostname: 'box', mounts: [], agent: true }

async function say (link: GuestLink, script: string): Promise<string> {
  const session = link.exec({ argv: ['/bin/sh', '-c', script] })
  session.stdin.end()
  const [out] = await Promise.all([text(session.stdout), session.result])
  return out
}

/** Hashes all that comes, and then says that. */
function hashing (connection: Duplex): void {
  const hash: Hash = createHash('sha256')
  connection.on('data', (piece: Buffer) => { hash.update(piece) })
  connection.on('end', () => { connection.end(`${hash.digest('hex')}\n`) })
}

// a boot under emulation
t.setTimeout(1_400_000)

t.test('programs of a guest without a network talk to a server of the host', { timeout: 900_000 }, async (t) => {
  const folder = await testFolder(t)
  const image = await makeRoot(folder, async (root) => {
    for (const name of ['nc', 'wget', 'dd', 'grep', 'seq']) await symlink('busybox', join(root, 'bin', name))
  })
  const machine = await startMachine(t, folder, { image, network: false })
  const link = new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
  await link.run(WORKLOAD)

  await t.test('10 MB each way, whole', async (t) => {
    const bytes = randomBytes(TEN_MB)
    const wanted = createHash('sha256').update(bytes).digest('hex')
    const down = await link.listen(7000, (connection) => { connection.resume().end(bytes) })
    let began = performance.now()
    t.equal((await say(link, 'nc 127.0.0.1 7000 < /dev/null | sha256sum')).slice(0, 64), wanted)
    const downMs = performance.now() - began
    down.close()
    const up = await link.listen(7001, hashing)
    const own = (await say(link, 'dd if=/dev/urandom of=/tmp/big bs=1000000 count=10 2>/dev/null; sha256sum < /tmp/big')).slice(0, 64)
    began = performance.now()
    t.equal((await say(link, 'nc 127.0.0.1 7001 < /tmp/big')).trim(), own)
    t.comment(`10 MB to the guest in ${Math.round(downMs)} ms, from it in ${Math.round(performance.now() - began)} ms`)
    up.close()
  })

  await t.test('20 connections at once, each with its own', async (t) => {
    const listener = await link.listen(7002, (connection) => { connection.pipe(connection) })
    const out = await say(link, 'for i in $(seq 20); do (echo "this is $i" | nc 127.0.0.1 7002) & done; wait')
    t.same(out.trim().split('\n').sort(), Array.from({ length: 20 }, (_, index) => `this is ${index + 1}`).sort())
    const many = await say(link, 'for i in $(seq 60); do (echo "this is $i" | nc 127.0.0.1 7002) & done; wait')
    t.equal(many.trim().split('\n').length, 60, 'more than there are channels, too')
    listener.close()
  })

  await t.test('a server of HTTP serves them', async (t) => {
    const server = createServer((request, response) => { response.end(`you asked for ${request.url ?? ''}`) })
    const listener = await link.listen(80, (connection) => { server.emit('connection', connection) })
    t.equal(await say(link, 'wget -q -O - http://127.0.0.1/v2/ && wget -q -O - http://127.0.0.1/again'), 'you asked for /v2/you asked for /again')
    listener.close()
  })

  await t.test('the port is the guest\'s own, and free again after it is left', async (t) => {
    const listener = await link.listen(7003, hashing)
    await t.rejects(link.listen(7003, hashing), { code: 'guest_refused', errno: 98 })
    listener.close()
    t.equal(await say(link, 'echo x | nc 127.0.0.1 7003 2>&1 | grep -c refused'), '1\n')
    const busy = link.exec({ argv: ['/bin/nc', '-l', '-p', '7004'] })
    await say(link, 'until cat /proc/net/tcp /proc/net/tcp6 | grep -q :1B5C; do sleep 0.05; done')
    await t.rejects(link.listen(7004, hashing), { code: 'guest_refused', errno: 98 })
    busy.cancel()
    await busy.result
    const again = await link.listen(7003, hashing)
    t.match(await say(link, 'echo x | nc 127.0.0.1 7003'), /^[0-9a-f]{64}\n$/)
    again.close()
  })

  await t.test('connections stand still with their programs, and go on with them', async (t) => {
    const listener = await link.listen(7005, hashing)
    const slow = say(link, '(echo a; sleep 1; echo b) | nc 127.0.0.1 7005')
    await link.sleep()
    await t.rejects(link.listen(7006, hashing), { code: 'guest_refused', errno: 11 })
    await link.wake()
    t.equal((await slow).trim(), createHash('sha256').update('a\nb\n').digest('hex'))
    listener.close()
  })

  await t.test('the host calls a program, and is told where nobody listens', async (t) => {
    const { signal } = new AbortController()
    await t.rejects(link.connect(7008, { signal }), { code: 'guest_refused', errno: 111 })
    await t.rejects(link.connect(7008, { address: 'localhost', signal }), { code: 'guest_refused', errno: 22 })
    const server = link.exec({ argv: ['/bin/nc', '-l', '-p', '7008'] })
    await say(link, 'until cat /proc/net/tcp /proc/net/tcp6 | grep -q ":1B60 .* 0A "; do sleep 0.05; done')
    const connection = await link.connect(7008, { signal })
    connection.end('from the host\n')
    server.stdin.end('from the guest\n')
    t.same(await Promise.all([text(connection), text(server.stdout)]), ['from the guest\n', 'from the host\n'])
  })

  await t.test('a new host finds nothing of it', async (t) => {
    const connected = new Promise<Duplex>((resolve, reject) => { link.listen(7007, resolve).catch(reject) })
    link.exec({ argv: ['/bin/sh', '-c', 'sleep 1000 | nc 127.0.0.1 7007'] })
    const connection = await connected
    const closed = new Promise((resolve) => { connection.once('close', resolve) })
    link.close()
    await closed
    const next = new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 60_000 })
    await next.hello
    t.equal(await say(next, 'grep -q ":1B5F .* 0[1A] " /proc/net/tcp && echo some || echo none'), 'none\n')
    t.ok(await next.listen(7007, hashing))
    await next.shutdown(1000)
    await machine.ended
  })
})
