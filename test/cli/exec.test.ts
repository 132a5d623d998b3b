// What `berth exec` asks a server for.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { deferred } from '../../core/jobs/deferred.ts'
import { createApi } from '../../cli/api/client.ts'
import { execute } from '../../cli/exec/program.ts'
import { eventually } from '../helpers/eventually.ts'
import { berth } from './berth.ts'

interface ExecServer {
  readonly url: string
  /** the durations of its waits */
  readonly waits: string[]
  /** the first message of each command */
  readonly commands: Record<string, unknown>[]
  /** and those that came later */
  readonly later: unknown[]
}

/** A server whose commands end with 7 after `lasting`, and whose instance runs after so many waits. */
async function execServer (t: Test, { coming = 0, lasting = Promise.resolve() }: { readonly coming?: number, readonly lasting?: Promise<void> } = {}): Promise<ExecServer> {
  const [waits, commands, later]: [string[], Record<string, unknown>[], unknown[]] = [[], [], []]
  const server = createServer(({ url = '' }, reply) => {
    waits.push(new URL(url, 'http://server').searchParams.get('timeout') ?? '')
    const isThere = waits.length > coming
    reply.end(JSON.stringify({ state: isThere ? 'Running' : 'Initializing', timed_out: !isThere }))
  }).listen(0, '127.0.0.1')
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.once('message', (first: Buffer) => {
      commands.push(JSON.parse(String(first)) as Record<string, unknown>)
      socket.on('message', (data: Buffer) => later.push(JSON.parse(String(data))))
      void lasting.then(() => { socket.send('{"exitCode":7}') })
    })
  })
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
  })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, waits, commands, later }
}

t.test('--wait lasts as long as it says, in calls that the server allows', async (t) => {
  const { url, waits, commands } = await execServer(t, { coming: 2 })
  t.match(await berth(['exec', '--wait', '2h', 'web', 'true'], { env: { BERTH_URL: url, BERTH_TOKEN: 'key' } }), { code: 7, error: '' })
  t.strictSame(waits, ['300s', '300s', '300s'])
  t.match(commands, [{ command: ['true'], wait_for_agent: 3600 }])
  const never = await execServer(t, { coming: Infinity })
  t.match(await berth(['exec', '--wait', '1s', 'web', 'true'], { env: { BERTH_URL: never.url, BERTH_TOKEN: 'key' } }), { code: 125, error: /web is Initializing, not Running/ })
  t.ok(never.waits.length > 0)
})

t.test('a terminal that does not know its size says none', async (t) => {
  for (const [size, said] of [[{ rows: 0, columns: 0 }, {}], [{ rows: 24, columns: 80 }, { rows: 24, cols: 80 }]] as const) {
    const output = Object.assign(new PassThrough(), size)
    const { promise: lasting, resolve: end } = deferred<void>()
    const { url, commands, later } = await execServer(t, { lasting })
    const over = new AbortController()
    const api = createApi({ url: new URL(url), token: undefined, ca: undefined, origin: 'the test' }, 'test', 0, over.signal)
    const streams = { input: Readable.from([]), output: output as never, error: output as never }
    const code = execute(api, { instance: 'web', command: ['sh'], tty: true, interactive: false }, streams, over.signal)
    await eventually('it has begun', () => commands.length > 0)
    output.emit('resize')
    Object.assign(output, { rows: 30, columns: 90 }).emit('resize')
    await eventually('its new size is told', () => later.length > (size.rows === 0 ? 0 : 1))
    end()
    t.equal(await code, 7)
    const [{ rows, cols } = {}] = commands
    t.strictSame({ ...rows === undefined ? {} : { rows }, ...cols === undefined ? {} : { cols } }, said)
    t.strictSame(later, [...size.rows === 0 ? [] : [{ resize: said }], { resize: { rows: 30, cols: 90 } }])
  }
})
