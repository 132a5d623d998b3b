// Exec sessions over real WebSockets, on a scripted guest.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import type { Plugin } from '../../../../core/plugins/manifest.ts'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { startApp, type TestApp } from '../app.ts'
import type { ScriptedHost } from '../scripted.ts'
import type { ScriptedExec } from '../scripted-exec.ts'
import { until } from '../../../helpers/eventually.ts'
import { limitMs, mainThreadMs } from '../../../helpers/processor-time.ts'
import { leaseWatcher } from './lease-watcher.ts'

interface Client {
  readonly socket: WebSocket
  readonly session: Promise<ScriptedExec>
  readonly binary: Buffer[]
  readonly texts: string[]
  readonly closed: Promise<number>
}

async function running (t: Test, plugins: readonly Plugin[] = []): Promise<TestApp> {
  const app = await startApp(t, { listen: true, plugins })
  await app.make('web', { env: { FROM_INSTANCE: '1' } })
  await app.waitFor('web', 'Running')
  return app
}

async function open ({ app, host }: TestApp, request: unknown): Promise<Client> {
  const socket = new WebSocket(`${app.address().replace('http', 'ws')}/instances/web/exec`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const binary: Buffer[] = []
  const texts: string[] = []
  socket.on('message', (data: Buffer, isBinary: boolean) => { if (isBinary) binary.push(data); else texts.push(data.toString()) })
  const closed = once(socket, 'close').then(([code]) => Number(code))
  await once(socket, 'open')
  const session = new Promise<ScriptedExec>((resolve) => { host.onExec = resolve })
  socket.send(typeof request === 'string' ? request : JSON.stringify(request))
  return { socket, session, binary, texts, closed }
}

t.test('a command runs with what was asked for, its output comes merged, and its exit code last', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['ls', '-l'], env: { A: 'b' }, cwd: '/tmp', user: 'nobody', timeout: 1.5 })
  const session = await client.session
  t.match(app.host.vm.execs[0]?.spec, { argv: ['ls', '-l'], cwd: '/tmp', user: 'nobody', timeoutMs: 1500, env: { A: 'b', FROM_INSTANCE: '1', FROM_IMAGE: 'yes' } })
  session.stdout.write('out')
  session.stderr.write('err')
  session.end({ exitCode: 3, signal: 0 })
  t.equal(await client.closed, 1000)
  t.equal(Buffer.concat(client.binary).toString().split('').sort().join(''), 'eorrtu')
  t.same(client.texts, ['{"exitCode":3}'])
})

t.test('no command is a shell, and a terminal has a size and a TERM', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: [], tty: true, rows: 10, cols: 20 })
  const session = await client.session
  t.match(app.host.vm.execs[0]?.spec, { argv: ['/bin/sh'], cwd: '/', tty: { rows: 10, cols: 20 }, env: { TERM: 'xterm' } })
  client.socket.send('{"resize":{"rows":30,"cols":40}}')
  client.socket.send('ls {"resize":')
  client.socket.send(Buffer.from('{"resize":{"rows":1,"cols":1}}'))
  await until(() => session.stdin.readableLength > 40)
  t.same(session.sizes, [[30, 40]], 'only text is a resize')
  t.equal(session.stdin.read().toString(), 'ls {"resize":{"resize":{"rows":1,"cols":1}}')
  session.end({ exitCode: 0, signal: 0 })
  await client.closed
})

t.test('a compatible client without a terminal sends any text as standard input', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['cat'] })
  const session = await client.session
  const texts = ['{"resize":{"rows":1,"cols":1}}', '{"stdin":"close"}', '{"signal":9}', 'plain']
  for (const text of texts) client.socket.send(text)
  await until(() => session.stdin.readableLength === texts.join('').length)
  t.equal(session.stdin.read().toString(), texts.join(''))
  t.same([session.sizes, session.signals], [[], []])
  session.end({ exitCode: 0, signal: 0 })
  await client.closed
})

t.test('with control, text commands: signals, sizes and the end of standard input', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sort'], control: true, streams: true })
  const session = await client.session
  client.socket.send(Buffer.from('b\na\n'))
  for (const message of [{ signal: 'TERM' }, { signal: 'SIGHUP' }, { signal: 10 }, { resize: { rows: 5, cols: 6 } }, { stdin: 'close' }]) client.socket.send(JSON.stringify(message))
  const [chunks] = await Promise.all([session.stdin.toArray()])
  t.equal(Buffer.concat(chunks).toString(), 'b\na\n')
  t.same(session.signals, [15, 1, 10])
  t.same(session.sizes, [[5, 6]])
  session.stdout.write('a\n')
  session.stderr.write('!')
  session.end({ exitCode: 0, signal: 0 })
  t.equal(await client.closed, 1000)
  t.same(client.binary.map((frame) => [frame[0], frame.subarray(1).toString()]).sort(), [[1, 'a\n'], [2, '!']])
})

t.test('stdin: false closes it at once', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['cat'], stdin: false })
  const session = await client.session
  t.same(await session.stdin.toArray(), [])
  session.end({ exitCode: 0, signal: 0 })
  await client.closed
})

t.test('a command that cannot be started says why', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['/nope'] })
  ;(await client.session).end({ exitCode: 127, signal: 0, error: 'no such file' })
  t.equal(await client.closed, 1000)
  t.equal(Buffer.concat(client.binary).toString(), 'Error: no such file\r\n')
  t.same(client.texts, ['{"exitCode":127}'])
})

t.test('a faulty request and a faulty control message are answered, and the command ends', async (t) => {
  const app = await running(t)
  for (const [request, message] of [
    ['not json', /JSON/], ['[]', /object/], [{ comand: ['x'] }, /comand/], [{ command: 'ls' }, /command/], [{ command: ['x'], rows: 0 }, /rows/],
    [{ command: ['x'], env: { 'A-B': '' } }, /^env: "A-B"/]
  ] as const) {
    const client = await open(app, request)
    t.equal(await client.closed, 1008)
    t.match(JSON.parse(client.texts[0] ?? ''), { error: message })
  }
  const client = await open(app, { command: ['x'], control: true })
  const session = await client.session
  client.socket.send('{"signal":"NOPE"}')
  t.equal(await client.closed, 1008)
  t.match(client.texts[0], /NOPE/)
  t.ok(session.cancelled)
})

/** as many fields as fit into a message */
const MANY_FIELDS = `{${Array.from({ length: 95_000 }, (_, at) => `"${at.toString(36)}":0`).join(',')}}`
const LONG_LIST = `{"command":[${'"",'.repeat(340_000)}""]}`

t.test('no text of a client, whatever JSON is in it, keeps the server from others', async (t) => {
  const app = await running(t)
  const limit = limitMs()
  const quick = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const start = mainThreadMs()
    await work()
    const took = mainThreadMs() - start
    t.ok(took < limit, `${name}: ${took} ms of ${limit}`)
  }
  for (const text of [MANY_FIELDS, LONG_LIST, `{"env":${MANY_FIELDS}}`, `[${'['.repeat(500_000)}`, '['.repeat(400_000) + ']'.repeat(400_000)]) {
    await quick(`first ${text.slice(0, 20)}`, async () => {
      const client = await open(app, text)
      t.equal(await client.closed, 1008)
      t.ok((client.texts[0] ?? '').length < 1000)
    })
  }
  for (const text of [MANY_FIELDS, LONG_LIST]) {
    const controlled = await open(app, { command: ['x'], control: true })
    await controlled.session
    await quick(`control ${text.slice(0, 20)}`, async () => {
      controlled.socket.send(text)
      t.equal(await controlled.closed, 1008)
      t.match(controlled.texts, [/at most 4096 characters/])
    })
    const terminal = await open(app, { command: ['x'], tty: true })
    const session = await terminal.session
    await quick(`terminal ${text.slice(0, 20)}`, async () => {
      for (let count = 0; count < 5; count++) {
        terminal.socket.send(text)
        await until(() => session.stdin.readableLength === text.length)
        t.equal(session.stdin.read().length, text.length, 'it is input')
      }
    })
    session.end({ exitCode: 0, signal: 0 })
    await terminal.closed
  }
})

t.test('a client that goes takes its command with it', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sleep'] })
  const session = await client.session
  client.socket.terminate()
  await until(() => session.cancelled)
  t.ok(session.cancelled)
})

t.test('a command whose timeout is months away is not ended at once', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sleep'], timeout: 31_536_000 })
  const session = await client.session
  await new Promise((resolve) => { setTimeout(resolve, 200) })
  t.notOk(session.cancelled)
  session.end({ exitCode: 0, signal: 0 })
  t.equal(await client.closed, 1000)
  t.same(client.texts, ['{"exitCode":0}'])
})

t.test('a guest that ends no command keeps neither a client beyond its timeout nor, once the client has gone, its instance awake', async (t) => {
  const watcher = leaseWatcher()
  const app = await running(t, [watcher.plugin])
  const late = await open(app, { command: ['sleep'], timeout: 0.1 })
  const gone = await open(app, { command: ['sleep'] })
  for (const session of [await late.session, await gone.session]) session.cancel = () => { session.cancelled = true }
  const { body: { id } } = await app.call('GET', '/instances/web')
  t.same(watcher.reasons(String(id)), ['exec', 'exec'])
  gone.socket.terminate()
  t.equal(await late.closed, 1000)
  t.same(late.texts, ['{"exitCode":124}'])
  await until(() => watcher.reasons(String(id)).length === 0)
})

t.test('a broken link to the guest is told, and never looks like success', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sleep'] })
  ;(await client.session).lose()
  t.equal(await client.closed, 1011)
  t.match(JSON.parse(client.texts[0] ?? ''), { error: /connection to the guest ended/ })
})

t.test('a slow client holds the guest back; memory stays flat', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['yes'] })
  const session = await client.session
  client.socket.pause()
  const chunk = Buffer.alloc(64 * 1024, 0x79)
  let written = 0
  let blocked = false
  // Writes until nobody takes any more for a while.
  while (!blocked && written < 64 * 2 ** 20) {
    const taken = session.stdout.write(chunk)
    written += chunk.length
    if (!taken) blocked = !await Promise.race([once(session.stdout, 'drain').then(() => true), new Promise<boolean>((resolve) => { setTimeout(resolve, 500, false) })])
  }
  t.ok(blocked, `held back after ${written} bytes`)
  t.ok(written < 32 * 2 ** 20)
  client.socket.resume()
  session.end({ exitCode: 0, signal: 0 })
  t.equal(await client.closed, 1000)
  t.equal(client.binary.reduce((sum, frame) => sum + frame.length, 0), written, 'and nothing is lost')
})

t.test('a guest that does not read holds the client back', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sleep'] })
  const session = await client.session
  for (let count = 0; count < 256; count++) client.socket.send(Buffer.alloc(256 * 1024))
  await until(() => client.socket.bufferedAmount > 0 && session.stdin.writableNeedDrain)
  await new Promise((resolve) => { setTimeout(resolve, 300) })
  t.ok(client.socket.bufferedAmount > 16 * 2 ** 20, 'most of 64 MiB waits at the client')
  session.end({ exitCode: 0, signal: 0 })
  await until(() => client.texts.length === 1)
  client.socket.terminate()
})

t.test('a guest that takes no signals and sizes holds the client back, and one that takes them again gets each', async (t) => {
  const app = await running(t)
  const client = await open(app, { command: ['sleep'], control: true })
  const session = await client.session
  let take = (): void => {}
  session.taking = new Promise((resolve) => { take = resolve })
  const count = 40_000
  for (let sent = 0; sent < count; sent++) client.socket.send(`{"signal":10${' '.repeat(1000)}}`)
  await until(() => client.socket.bufferedAmount > 0 && session.signals.length === 1)
  await new Promise((resolve) => { setTimeout(resolve, 300) })
  t.equal(session.signals.length, 1)
  t.ok(client.socket.bufferedAmount > 0, 'some wait at the client')
  session.taking = undefined
  take()
  await until(() => session.signals.length === count)
  session.end({ exitCode: 0, signal: 0 })
  t.equal(await client.closed, 1000)
})

t.test('an instance that is not Running refuses before the upgrade, one without an agent too, and so does a wrong key', async (t) => {
  const app = await running(t)
  await app.make('bare', { skip_guest_agent: true })
  await app.waitFor('bare', 'Running')
  const refusal = async (name: string, key = ADMIN_KEY): Promise<[number, string]> => {
    const socket = new WebSocket(`${app.app.address().replace('http', 'ws')}/instances/${name}/exec`, { headers: { authorization: `Bearer ${key}` } })
    const [, response] = await once(socket, 'unexpected-response')
    const chunks = await response.toArray()
    return [response.statusCode, Buffer.concat(chunks).toString()]
  }
  const host: ScriptedHost = app.host
  t.match(await refusal('bare'), [501, /not_supported/])
  t.match(await refusal('nothing'), [404, /not_found/])
  t.match(await refusal('web', 'wrong'), [401, /code/])
  await host.vms[0]?.exit()
  await app.waitFor('web', 'Stopped')
  t.match(await refusal('web'), [409, /invalid_state.*Stopped/])
})
