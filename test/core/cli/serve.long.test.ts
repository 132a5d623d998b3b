// The server as a process: its lines, its signals, its exit codes.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { builtInFolder, findBuiltIns } from '../../../core/plugins/discover.ts'
import { temporaryFolder } from '../bare-app.ts'

const main = fileURLToPath(new URL('../../../core/main.js', import.meta.url))

interface Server {
  readonly process: ChildProcess
  readonly lines: Record<string, unknown>[]
  readonly stderr: () => string
  /** the first line with this message; rejects when the process ends before it */
  line (message: string): Promise<Record<string, unknown>>
  /** exit code, or the signal's name */
  readonly ended: Promise<number | string>
}

/** Why a test that needs these commands is skipped; `false` when they are all here. */
function missing (...commands: string[]): string | false {
  const absent = commands.filter(command => !['/usr/bin', '/bin'].some(folder => existsSync(join(folder, command))))
  return absent.length > 0 && `not installed: ${absent.join(', ')}`
}

/** A configuration without built-in plugins, with one plugin of the test's own where it is given. */
async function folderFor (t: Test, pluginBody?: string): Promise<string> {
  const folder = await temporaryFolder(t)
  const off = [...(await findBuiltIns(builtInFolder)).keys()].map((id): [string, object] => [id, { enabled: false }])
  const plugins: Record<string, object> = Object.fromEntries(off)
  if (pluginBody !== undefined) {
    plugins['tested'] = { module: './tested.mjs' }
    await writeFile(join(folder, 'tested.mjs'), `export const plugin = {
      manifest: { id: 'tested', provides: [], requires: ['log'], config: { type: 'object', additionalProperties: false } }, ${pluginBody} }`)
  }
  const server = { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', metrics: { listen: '127.0.0.1:0' } }
  await writeFile(join(folder, 'berth.yaml'), stringify({ server, plugins }))
  return folder
}

function serve (t: Test, folder: string, environment: Record<string, string> = {}): Server {
  const child = spawn(process.execPath, [main, 'serve', '--config', join(folder, 'berth.yaml')], {
    env: { PATH: process.env['PATH'], ...environment }, stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => child.kill('SIGKILL'))
  const lines: Record<string, unknown>[] = []
  const waiting = new Set<() => void>()
  let stderr = ''
  child.stderr.on('data', chunk => { stderr += String(chunk) })
  createInterface({ input: child.stdout }).on('line', text => {
    lines.push(JSON.parse(text))
    for (const look of waiting) look()
  })
  const ended = once(child, 'close').then(([code, signal]): number | string => code ?? signal)
  return {
    process: child,
    lines,
    stderr: () => stderr,
    ended,
    line: message => new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.find(line => line['msg'] === message)
        if (found !== undefined) resolve(found)
      }
      waiting.add(look)
      look()
      ended.then(how => { reject(new Error(`ended with ${how} before "${message}": ${stderr}`)) }, reject)
    })
  }
}

t.test('it says where it listens, answers, and ends with 0 on SIGTERM and on SIGINT', async (t) => {
  const folder = await folderFor(t, "create: ({ log }) => ({ async stop () { log.info('tested stopped') } })")
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const server = serve(t, folder)
    const { url } = await server.line('listening')
    t.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
    t.strictSame(await (await fetch(`${String(url)}/health`)).json(), { status: 'ok' })
    server.process.kill(signal)
    t.equal(await server.ended, 0)
    t.ok(server.lines.some(line => line['msg'] === 'tested stopped'))
    t.equal(server.lines.filter(line => line['msg'] === 'listening').length, 1)
  }
})

t.test('a second server on the folder is refused; after kill -9 a new one takes over', async (t) => {
  const folder = await folderFor(t)
  const first = serve(t, folder)
  await first.line('listening')
  const second = serve(t, folder)
  t.equal(await second.ended, 1)
  t.match(second.stderr(), new RegExp(`the data folder .* is in use by another server \\(process ${first.process.pid}\\)`))
  first.process.kill('SIGKILL')
  t.equal(await first.ended, 'SIGKILL')
  const third = serve(t, folder)
  await third.line('listening')
  third.process.kill('SIGTERM')
  t.equal(await third.ended, 0)
})

t.test('a second signal ends it at once, however long a plugin takes to stop', async (t) => {
  const server = serve(t, await folderFor(t, "create: ({ log }) => ({ stop: () => { log.info('hanging'); return new Promise(() => {}) } })"))
  await server.line('listening')
  server.process.kill('SIGTERM')
  await server.line('hanging')
  server.process.kill('SIGTERM')
  t.equal(await server.ended, 143)
})

t.test('a signal during the start ends it with 0, and what had begun is stopped', async (t) => {
  const server = serve(t, await folderFor(t, "create: ({ log }) => ({ start: () => { log.info('hanging'); return new Promise(() => {}) }, async stop () { log.info('tested stopped') } })"))
  await server.line('hanging')
  server.process.kill('SIGTERM')
  t.equal(await server.ended, 0)
  t.ok(server.lines.some(line => line['msg'] === 'tested stopped'))
  t.notOk(server.lines.some(line => line['msg'] === 'listening'))
})

t.test('an uncaught exception and an unhandled rejection are fatal', async (t) => {
  const faults: [string, string][] = [
    ["setImmediate(() => { throw new Error('stray') })", 'uncaught exception'],
    ["void Promise.reject(new Error('stray'))", 'unhandled rejection']
  ]
  for (const [fault, message] of faults) {
    const server = serve(t, await folderFor(t, `create: () => ({ async start () { setTimeout(() => { ${fault} }, 10) } })`))
    t.equal(await server.ended, 1)
    t.match(server.lines.find(line => line['msg'] === message), { level: 'fatal', err: { message: 'stray' } })
  }
})

t.test('a plugin that does not start and a wrong configuration give 1 and a sentence', async (t) => {
  const failing = serve(t, await folderFor(t, "create: () => ({ async start () { throw new Error('no disk') } })"))
  t.equal(await failing.ended, 1)
  t.equal(failing.stderr().trim(), 'berth: plugin tested did not start: no disk')
  const wrong = serve(t, await folderFor(t), { BERTH_LISTEN: 'nowhere' })
  t.equal(await wrong.ended, 1)
  t.match(wrong.stderr(), /BERTH_LISTEN must be host:port/)
})

t.test('a port that is taken gives 1 and says so', async (t) => {
  const folder = await folderFor(t)
  const first = serve(t, folder)
  const { url } = await first.line('listening')
  const second = serve(t, await folderFor(t), { BERTH_LISTEN: new URL(String(url)).host })
  t.equal(await second.ended, 1)
  t.match(second.stderr(), /server\.listen: .* is taken/)
})

t.test('a systemd that cannot be told is a warning, not a fault', async (t) => {
  const server = serve(t, await folderFor(t), { NOTIFY_SOCKET: '/nonexistent/notify' })
  await server.line('systemd could not be notified')
  t.equal((await fetch(`${String((await server.line('listening'))['url'])}/health`)).status, 200)
  server.process.kill('SIGTERM')
  t.equal(await server.ended, 0)
})

// Node cannot receive datagrams on a unix socket. A plain recv() drops the descriptor that systemd-notify sends along, which is the answer it waits for.
const NOTIFY_RECEIVER = `use Socket; $| = 1;
  socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die $!; bind($s, sockaddr_un($ARGV[0])) or die $!;
  print "bound\\n"; while (defined recv($s, my $text, 4096, 0)) { print "$text\\n" }`

t.test('systemd hears READY=1 once it listens, and STOPPING=1', { skip: missing('systemd-notify', 'perl') }, async (t) => {
  const folder = await folderFor(t)
  const socket = join(folder, 'notify')
  const receiver = spawn('perl', ['-e', NOTIFY_RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => receiver.kill('SIGKILL'))
  const heard = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => {
    for (;;) {
      const { value, done } = await heard.next()
      if (done === true || value !== 'BARRIER=1') return String(value)
    }
  }
  t.equal(await next(), 'bound')
  const server = serve(t, folder, { NOTIFY_SOCKET: socket })
  t.equal(await next(), 'READY=1')
  // Its pipe and the socket race: the line may be read here after the message, though it was written before.
  t.ok(await server.line('listening'))
  server.process.kill('SIGTERM')
  t.equal(await next(), 'STOPPING=1')
  t.equal(await server.ended, 0)
  t.notOk(server.lines.some(line => line['msg'] === 'systemd could not be notified'))
})
