// What a server says, and what guests and their callers say through it, reaches the terminal as text: no character of it is a command to the terminal. And nothing of it is without an end.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { parse } from 'yaml'
import { berth } from './berth.ts'

/** Sequences that an old and a new terminal take for commands: to clear it, to set its title, to turn text round. */
const TRICK = 'a\u001b[2Jb\u009b2Jc\u009d0;title\u009cd\u007f'
const LINE = { time: '2026-01-31T12:00:00.000Z', client: '192.0.2.1', method: 'GET', host: 'shop', path: `/\u009b2J${TRICK}`, status: 200, bytes_out: 1, duration_ms: 1 }
const THING = { id: TRICK, name: TRICK, image: TRICK, state: 'Running', created_at: LINE.time, tags: { [TRICK]: TRICK }, version: TRICK, api_version: TRICK, scopes: [TRICK], expires_at: TRICK }

async function hostile (t: Test): Promise<Readonly<Record<string, string>>> {
  const server = createServer(({ url = '' }, reply) => {
    if (url.includes('/stream')) {
      reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${JSON.stringify(url.includes('/host/') ? { time: LINE.time, level: 'info', message: TRICK, fields: { [TRICK]: TRICK } } : LINE)}\n\n`)
      return
    }
    const body = url.startsWith('/instances?') ? [THING] : url.startsWith('/ports?') ? [] : url.includes('/ingress') ? { entries: [LINE] } : url === '/capabilities' ? { server: THING } : THING
    reply.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close() })
  return { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

t.test('no command prints a control character that somebody else chose', async (t) => {
  const env = await hostile(t)
  const calls = ['ingress log web', 'ingress log -f web', 'ingress log -f --json web', 'host log -f', 'host log -f --json', 'ps', 'ps -q', 'ps --json', 'ps --format jsonl', 'ps --format yaml', 'inspect web', 'whoami', 'whoami --json', 'version']
  for (const call of calls) {
    const { code, out, error } = await berth(call.split(' '), { env })
    t.equal(code, 0, `${call}: ${error}`)
    // eslint-disable-next-line no-control-regex
    t.notMatch(out + error, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/, call)
    t.ok(out.includes('2J'), `${call} shows it`)
  }
})

t.test('JSON and YAML say the same as the server, character by character', async (t) => {
  const env = await hostile(t)
  t.strictSame(JSON.parse((await berth(['ps', '--json'], { env })).out), [THING])
  t.strictSame(parse((await berth(['ps', '--format', 'yaml'], { env })).out), [THING])
})

t.test('an event of many short lines that does not end is given up', async (t) => {
  const lines = `data: ${'x'.repeat(60_000)}\n`.repeat(16)
  const server = createServer((_request, reply) => {
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    const go = (): void => { while (!reply.destroyed && reply.write(lines)); }
    reply.on('drain', go)
    go()
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { code, error } = await berth(['logs', 'web', '--timeout', '20s'], { env: { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } })
  t.equal(error, 'berth: an event of the server does not end\n')
  t.equal(code, 1)
})

t.test('a message that is no JSON is a failure in one line', async (t) => {
  const server = createServer((_request, reply) => { reply.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: {no json\n\n') })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => { socket.send('{no json') })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
    server.close()
  })
  const env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  const folder = await mkdtemp(join(tmpdir(), 'berth-hostile-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  await writeFile(join(folder, 'file'), 'x')
  for (const args of [['logs', 'web'], ['host', 'log', '-f'], ['exec', 'web', 'true'], ['cp', 'web:/x', join(folder, 'out')], ['cp', join(folder, 'file'), 'web:/x']]) {
    const { code, error } = await berth(args, { env })
    t.match(error, /^berth: [^\n]*is no JSON[^\n]*\n$/, args.join(' '))
    t.not(code, 0)
  }
})

t.test('a list ends where a page is empty, or says in words that nobody understands where the next one is', async (t) => {
  let asked = 0
  const server = createServer(({ url = '' }, reply) => {
    asked++
    reply.setHeader('content-type', 'application/json')
    if (url.startsWith('/instances')) reply.setHeader('link', '</instances?after=x>; rel="next"').end('[]')
    else reply.setHeader('link', '<http://[>; rel="next"').end('[]')
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close() })
  const env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  for (const call of ['ps', 'image ls']) {
    asked = 0
    const { code, error } = await berth([...call.split(' '), '-q'], { env })
    t.equal(error, '', call)
    t.equal(code, 0, call)
    t.ok(asked < 5, call)
  }
})
