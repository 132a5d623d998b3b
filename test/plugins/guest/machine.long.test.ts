// The real thing: Debian's kernel and berth-init in a VM, spoken to through a link.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { finished } from 'node:stream/promises'
import { pino } from 'pino'
import t from 'tap'
import type { ExecSpec, GuestEntry, GuestLink } from '../../../plugins/guest/contract.ts'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { startMachine, testFolder, type Machine } from './helpers/machine.ts'

const MIB = 2 ** 20
const WORKLOAD = {
  argv: ['/bin/sh', '-c', 'trap "echo bye; exit 7" TERM; echo up; while :; do sleep 0.1; done'],
  env: { GREETING: 'hello' }, cwd: '/data', user: '', hostname: 'box', mounts: [], agent: true
}

async function linkTo (machine: Machine): Promise<GuestLink> {
  return new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
}

async function output (link: GuestLink, spec: ExecSpec, input: string | Buffer = ''): Promise<string> {
  const session = link.exec(spec)
  session.stdin.end(input)
  const [out] = await Promise.all([text(session.stdout), session.result])
  return out
}

async function entries (link: GuestLink, path: string): Promise<Array<readonly [GuestEntry, string]>> {
  const all: Array<readonly [GuestEntry, string]> = []
  for await (const entry of link.get(path, { follow: true })) all.push([entry, entry.content === undefined ? '' : await text(entry.content)])
  return all
}

async function hashOf (stream: Readable): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of stream) hash.update(piece)
  return hash.digest('hex')
}

const LARGE_MB = 100

// a boot under emulation, and three times a large file through it
t.setTimeout(1_400_000)

t.test('a VM from boot to power-off', { timeout: 900_000 }, async (t) => {
  const folder = await testFolder(t)
  const machine = await startMachine(t, folder)
  const began = performance.now()
  let link = await linkTo(machine)
  const started = new Promise<void>((resolve) => { link.onStarted(resolve) })
  await link.run(WORKLOAD)
  await started
  t.comment(`from QEMU's start to the program's start: ${Math.round(performance.now() - began)} ms`)
  const hello = await link.hello
  t.equal(hello.protocol, 1)
  t.match(hello.kernel, /^6\.|^[1-9]\d*\./)
  t.ok(hello.memoryTotalBytes > 300 * MIB && hello.memoryTotalBytes < 512 * MIB, `${hello.memoryTotalBytes}`)

  await t.test('exec: input with its end, outputs apart, exit codes, user, folder and environment', async (t) => {
    t.equal(await output(link, { argv: ['/bin/sort', '-r'] }, 'a\nb\n'), 'b\na\n')
    const both = link.exec({ argv: ['/bin/sh', '-c', 'echo out; echo err >&2; exit 3'] })
    t.same(await Promise.all([text(both.stdout), text(both.stderr), both.result]), ['out\n', 'err\n', { exitCode: 3, signal: 0 }])
    t.equal(await output(link, { argv: ['/bin/sh', '-c', 'id -un; pwd; echo $GREETING $MORE'], user: 'ann', cwd: '/tmp', env: { MORE: 'ä' } }), 'ann\n/tmp\nhello ä\n')
    t.match(await link.exec({ argv: ['/bin/nothing'] }).result, { exitCode: 127, error: /./ })
    t.match(await link.exec({ argv: ['/etc/passwd'] }).result, { exitCode: 126 })
    t.match(await link.exec({ argv: ['/bin/sleep', '60'], timeoutMs: 200 }).result, { exitCode: 124 })
  })

  await t.test('exec: signals, cancelling, and a terminal', async (t) => {
    const killed = link.exec({ argv: ['/bin/sleep', '60'] })
    await killed.signal(15)
    t.match(await killed.result, { exitCode: 143, signal: 15 })
    const cancelled = link.exec({ argv: ['/bin/sh', '-c', 'sleep 77 & sleep 78'] })
    cancelled.cancel()
    t.match(await cancelled.result, { exitCode: 137 })
    t.equal(await output(link, { argv: ['/bin/sh', '-c', 'cat /proc/[0-9]*/cmdline | busybox tr "\\0" " " | busybox grep -c "sleep 7[78]" || true'] }), '0\n')
    const terminal = link.exec({ argv: ['/bin/sh', '-c', 'stty size; read x; stty size'], tty: { rows: 10, cols: 20 } })
    const shown = text(terminal.stdout)
    await terminal.resize(33, 44)
    terminal.stdin.write('\n')
    t.match(await shown, /33 44/)
    t.match(await terminal.result, { exitCode: 0 })
  })

  await t.test('stat, put and get', async (t) => {
    t.match(await link.stat('/data/hello', { follow: true }), { exists: true, type: 'file', sizeBytes: 6 })
    t.match(await link.stat('/data/link', { follow: false }), { exists: true, type: 'symlink', linkTarget: 'hello' })
    t.match(await link.stat('/data/link', { follow: true }), { type: 'file' })
    t.match(await link.stat('/none', { follow: true }), { exists: false })
    const upload = link.put({ path: '/tmp/new/deep/f', type: 'file', mode: 0o640, uid: 1000, gid: 1000, mtime: 1_000_000_000 })
    upload.content.end('forty bytes of JSON would be enough here')
    t.same(await upload.result, { bytes: 40 })
    t.match(await link.stat('/tmp/new/deep/f', { follow: true }), { mode: 0o640, uid: 1000, gid: 1000, mtime: 1_000_000_000, sizeBytes: 40 })
    await link.put({ path: '/tmp/dir', type: 'dir', mode: 0o700 }).result
    t.match(await link.stat('/tmp/dir', { follow: true }), { type: 'dir', mode: 0o700 })
    const data = await entries(link, '/data')
    t.equal(data.length, 304)
    t.equal(data.find(([entry]) => entry.path === 'many/f17')?.[1], 'content of 17\n')
    t.match(data.find(([entry]) => entry.path === 'link')?.[0], { type: 'symlink', linkTarget: 'hello' })
    t.same((await entries(link, '/data/hello')).map(([entry, content]) => [entry.path, content]), [['', 'hello\n']])
    await t.rejects(entries(link, '/none'), { code: 'guest_refused', errno: 2 })
    const refused = link.put({ path: '/proc/none/f', type: 'file', mode: 0o600 })
    refused.content.end('x')
    await t.rejects(refused.result, { code: 'guest_refused' })
  })

  await t.test('a large file in through put and out through exec and get, with flat memory', { timeout: 900_000 }, async (t) => {
    const block = randomBytes(MIB)
    const hash = createHash('sha256')
    const base = process.memoryUsage().rss
    let peak = base
    const sampler = setInterval(() => { peak = Math.max(peak, process.memoryUsage().rss) }, 50)
    const rates: string[] = []
    const timed = async (name: string, act: () => Promise<void>) => {
      const began = performance.now()
      await act()
      rates.push(`${name} ${Math.round(LARGE_MB * 1048.576 / (performance.now() - began))} MB/s`)
    }
    await timed('put', async () => {
      const upload = link.put({ path: '/tmp/big', type: 'file', mode: 0o600 })
      for (let index = 0; index < LARGE_MB; index++) {
        hash.update(block)
        if (!upload.content.write(block)) await once(upload.content, 'drain')
      }
      upload.content.end()
      t.same(await upload.result, { bytes: LARGE_MB * MIB })
    })
    const expected = hash.digest('hex')
    await timed('exec', async () => {
      const session = link.exec({ argv: ['/bin/cat', '/tmp/big'] })
      t.equal(await hashOf(session.stdout), expected)
      t.match(await session.result, { exitCode: 0 })
    })
    await timed('get', async () => {
      for await (const { content } of link.get('/tmp/big', { follow: true })) if (content !== undefined) t.equal(await hashOf(content), expected)
    })
    clearInterval(sampler)
    t.comment(`${rates.join(', ')}; server memory grew by ${Math.round((peak - base) / MIB)} MiB`)
    // Whoever kept it would have all of it; what has been read already, and not collected yet, is much less.
    t.ok(peak - base < LARGE_MB * 0.9 * MIB, `grew by ${Math.round((peak - base) / MIB)} MiB`)
  })

  await t.test('a slow reader of one command does not hold up another', async (t) => {
    const slow = link.exec({ argv: ['/bin/yes'] })
    await once(slow.stdout, 'readable')
    t.equal(await output(link, { argv: ['/bin/echo', 'quick'] }), 'quick\n')
    slow.cancel()
    slow.stdout.resume()
    slow.stderr.resume()
    t.match(await slow.result, { exitCode: 137 })
  })

  await t.test('a link that is cut anywhere is taken up again, and its commands are gone', { timeout: 900_000 }, async (t) => {
    // QEMU serves one connection at a time.
    link.close()
    for (let round = 0; round < 6; round++) {
      const socket = await machine.connect()
      const doomed = new StreamLink(socket, { log: pino({ level: 'silent' }), answerTimeoutMs: 60_000 })
      await doomed.hello
      const session = doomed.exec({ argv: ['/bin/sh', '-c', 'cat > /dev/null'], env: { DOOMED: '1' } })
      doomed.exec({ argv: ['/bin/yes'] }).stdout.resume()
      // Ends in the middle of a frame: a header that announces more than ever comes.
      const half = Buffer.alloc(12 + 1 + round * 5000)
      half.writeUInt32LE(60_000, 0)
      half.writeUInt32LE(1, 4)
      half.writeUInt8(3, 8)
      await new Promise<void>((resolve) => { socket.write(half, () => { resolve() }) })
      socket.end()
      await finished(socket, { error: false }).catch(() => {})
      await t.rejects(session.result, { code: 'guest_gone' })
      const again = await linkTo(machine)
      const began = performance.now()
      t.equal((await again.hello).phase, 'running', `round ${round}`)
      t.comment(`answered after ${Math.round(performance.now() - began)} ms`)
      t.equal(await output(again, { argv: ['/bin/sh', '-c', 'cat /proc/[0-9]*/environ 2>/dev/null | busybox grep -c DOOMED=1 || true'] }), '0\n')
      again.close()
    }
  })

  link = await linkTo(machine)
  const exited = new Promise((resolve) => { link.onExited(resolve) })
  await link.shutdown(10_000)
  t.match(await exited, { exitCode: 7, signal: 0, oom: false })
  await machine.ended
  t.match(await link.closed, /guest side closed|stream failed/)
  t.equal(await machine.output(), 'up\nbye\n')
  t.match(await machine.report(), /^version=1$[^]*^exit_code=7$[^]*^end$/m)
  t.match(await machine.console(), /^\[[ \d.]+\] reboot: Power down\s*$/, 'a boot says nothing more unless something is wrong')
})
