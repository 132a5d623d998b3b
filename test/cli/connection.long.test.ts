// Which server a command talks to, with which key, and what it says when there is none.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chmod, readdir, readFile, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { writeContexts } from '../../cli/connection/contexts.ts'
import { testFolder } from '../helpers/folder.ts'
import { berth } from './berth.ts'

interface Seen { readonly path: string, readonly authorization: string | undefined }

/** An HTTP server that answers as the test says and keeps what it was asked. */
async function origin (t: Test, answer: (request: IncomingMessage, reply: ServerResponse) => void): Promise<{ url: string, seen: Seen[] }> {
  const seen: Seen[] = []
  const server = createServer((request, reply) => {
    seen.push({ path: request.url ?? '', authorization: request.headers.authorization })
    answer(request, reply)
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close() })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

const empty = (_request: IncomingMessage, reply: ServerResponse): void => { reply.setHeader('content-type', 'application/json').end('[]') }

t.test('a server that is not there is one line with what to do, and exit code 6', async (t) => {
  const { url } = await origin(t, empty)
  const closed = url.replace(/\d+$/, '1')
  const { code, error } = await berth(['ps', '--url', closed])
  t.equal(code, 6)
  t.match(error, /^berth: http:\/\/127\.0\.0\.1:1: nothing answers there; .*berth doctor/)
  t.equal(error.trimEnd().split('\n').length, 1)
})

/** Refuses connections for a while after an answer of 503, as a server does that starts again. */
async function restarting (t: Test, backAfterMs: number, answer: string): Promise<{ url: string, asked: () => number }> {
  let asked = 0
  let back: NodeJS.Timeout | undefined
  const server = createServer((_request, reply) => {
    const isFirst = ++asked === 1
    reply.writeHead(isFirst ? 503 : 200, { 'content-type': 'application/json', connection: 'close' }).end(isFirst ? '{"code":"unavailable","message":"the server is stopping; try again"}' : answer)
    if (isFirst) server.close(() => { back = setTimeout(() => { server.listen(port, '127.0.0.1') }, backAfterMs) })
  })
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve) })
  const { port } = server.address() as AddressInfo
  t.teardown(() => {
    clearTimeout(back)
    server.close()
  })
  return { url: `http://127.0.0.1:${port}`, asked: () => asked }
}

t.test('a wait goes on while the server starts again, for as long as it may take', async (t) => {
  const server = await restarting(t, 1500, '{"state":"Stopped","timed_out":false}')
  t.match(await berth(['wait', 'web', '--url', server.url]), { code: 0, error: '' })
  t.equal(server.asked(), 2)
  const away = await restarting(t, 600_000, '')
  t.match(await berth(['wait', '--timeout', '2s', 'web', '--url', away.url]), { code: 124, error: /web is not Stopped yet|took longer than 2 s/ })
  const gone = away.url.replace(/\d+$/, '1')
  t.match(await berth(['wait', 'web', '--url', gone]), { code: 6 }, 'a server that never was there is none that comes back')
})

t.test('the address is a flag\'s, else the environment\'s, else the context\'s; a key goes to no server but its own', async (t) => {
  const one = await origin(t, empty)
  const two = await origin(t, empty)
  const contexts = join(testFolder(t), 'contexts.json')
  const env = { BERTH_CONTEXTS: contexts }
  t.match(await berth(['login', one.url, '--name', 'one'], { env, input: 'key-of-one\n' }), { code: 0, error: /logged in/ })
  t.match(await berth(['login', two.url, '--name', 'two'], { env, input: 'key-of-two\n' }), { code: 0 })
  t.equal((await stat(contexts)).mode & 0o777, 0o600)
  t.match(await berth(['context', 'ls'], { env }), { out: /\*\s+two/ })
  one.seen.length = two.seen.length = 0

  await berth(['ps'], { env })
  t.match(two.seen, [{ authorization: 'Bearer key-of-two' }])
  await berth(['context', 'use', 'one'], { env })
  await berth(['ps'], { env })
  t.match(one.seen, [{ authorization: 'Bearer key-of-one' }])
  await berth(['ps', '--context', 'two'], { env })
  t.match(two.seen.at(-1), { authorization: 'Bearer key-of-two' })
  await berth(['ps', '--url', two.url], { env })
  t.equal(two.seen.at(-1)?.authorization, undefined, 'the key of the chosen context stays at home')
  await berth(['ps'], { env: { ...env, BERTH_URL: two.url, BERTH_TOKEN: 'own' } })
  t.match(two.seen.at(-1), { authorization: 'Bearer own' })

  // The key of the environment belongs to the environment's address.
  const own = { ...env, BERTH_URL: two.url, BERTH_TOKEN: 'own' }
  await berth(['ps', '--context', 'one'], { env: own })
  t.match(one.seen.at(-1), { authorization: 'Bearer key-of-one' })
  await berth(['ps', '--url', one.url], { env: own })
  t.equal(one.seen.at(-1)?.authorization, undefined, 'the key of the environment stays at home')
  await berth(['ps', '--url', `${two.url}/`], { env: own })
  t.match(two.seen.at(-1), { authorization: 'Bearer own' }, 'the same server by another spelling')
  await berth(['ps', '--url', one.url], { env: { ...env, BERTH_TOKEN: 'own' } })
  t.match(one.seen.at(-1), { authorization: 'Bearer own' }, 'without an address of its own it is for the one that is named beside it')
  await berth(['ps', '--url', one.url, '--token', 'flag'], { env: own })
  t.match(one.seen.at(-1), { authorization: 'Bearer flag' })
  for (const chosen of ['', 'one']) {
    await berth(['ps'], { env: { ...env, BERTH_TOKEN: 'own', BERTH_CONTEXT: chosen } })
    t.match(one.seen.at(-1), { authorization: 'Bearer key-of-one' }, 'a chosen context has a key of its own')
  }
  t.match(await berth(['ps', '--context', 'three'], { env }), { code: 2, error: /there is no context three/ })
  t.match(await berth(['context', 'rm', 'one', 'two'], { env }), { code: 0 })
  t.notMatch(await readFile(contexts, 'utf8'), /key-of/)
})

t.test('a file of keys that others may read is refused', async (t) => {
  const contexts = join(testFolder(t, { 'contexts.json': '{"contexts":{}}' }), 'contexts.json')
  await chmod(contexts, 0o644)
  t.match(await berth(['ps'], { env: { BERTH_CONTEXTS: contexts } }), { code: 1, error: /others may read it; chmod 600/ })
})

t.test('credentials in an address, and what is no address, are refused', async (t) => {
  t.match(await berth(['ps', '--url', 'http://me:secret@127.0.0.1:1']), { code: 2, error: /must not hold credentials/ })
  t.match(await berth(['ps', '--url', 'ftp://127.0.0.1']), { code: 2, error: /http or https/ })
})

t.test('refusals of the server have exit codes of their own and one line', async (t) => {
  for (const [status, code] of [[400, 1], [401, 4], [403, 4], [404, 3], [409, 5], [500, 1]] as const) {
    const { url } = await origin(t, (_request, reply) => { reply.writeHead(status, { 'content-type': 'application/json' }).end('{"code":"x","message":"it says why"}') })
    const ended = await berth(['ps', '--url', url])
    t.match(ended, { code, error: /^berth: it says why/ }, String(status))
    t.equal(ended.out, '')
  }
})

t.test('an answer that is no answer of Berth, that does not end, or breaks off, is told as such', async (t) => {
  const html = await origin(t, (_request, reply) => { reply.end('<html>') })
  t.match(await berth(['ps', '--url', html.url]), { code: 1, error: /no JSON/ })
  const gateway = await origin(t, (_request, reply) => { reply.writeHead(502).end('<html>') })
  t.match(await berth(['ps', '--url', gateway.url]), { code: 1, error: /the answer was 502, and not one of Berth's/ })
  const cut = await origin(t, (_request, reply) => { reply.writeHead(200, { 'content-length': '100' }).write('[', () => reply.destroy()) })
  t.match(await berth(['ps', '--url', cut.url]), { code: 6, error: /the connection was lost in the middle of an answer/ })
  const silent = await origin(t, () => undefined)
  t.match(await berth(['ps', '--url', silent.url, '--timeout', '300ms']), { code: 124, error: /longer than 0\.3 s/ })
})

t.test('what waits ends at its time with 124, and at Ctrl-C with 130 and without a word', async (t) => {
  let asked = (): void => undefined
  const silent = await origin(t, () => asked())
  const late = await berth(['wait', 'web', '--url', silent.url, '--timeout', '300ms'])
  t.match(await berth(['ps', '--url', silent.url, '--timeout', '597h']), { code: 2, out: '', error: /--timeout 597h is too long/ })
  t.match(late, { code: 124, out: '', error: /^berth: it took longer than 0\.3 s\n$/ })
  t.match(silent.seen.map(({ path }) => path), [/^\/instances\/web\/wait\?state=Stopped&timeout=\d+ms$/])
  for (const args of [['wait', 'web'], ['ps'], ['logs', '-f', 'web'], ['stop', 'web', 'db']]) {
    const signalWhen = new Promise<void>((resolve) => { asked = resolve })
    silent.seen.length = 0
    t.strictSame(await berth([...args, '--url', silent.url], { signalWhen }), { code: 130, out: '', error: '' }, args.join(' '))
    t.equal(silent.seen.length, 1, 'and nothing further is asked')
  }
})

t.test('Ctrl-C while a command is loaded ends it before it does anything', async (t) => {
  const { url, seen } = await origin(t, empty)
  const folder = testFolder(t, {
    'contexts.json': '{"current":"one","contexts":{"one":{"url":"http://127.0.0.1:1","token":"key"}}}',
    // The signal comes from the loader's thread, which goes on when it has been delivered.
    'loader.mjs': `import { register } from 'node:module'
register('data:text/javascript,' + encodeURIComponent(\`
  export async function load (url, context, next) {
    if (url.includes('/cli/commands/')) {
      process.kill(process.pid, 'SIGINT')
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    return await next(url, context)
  }\`))
`
  })
  const contexts = join(folder, 'contexts.json')
  await chmod(contexts, 0o600)
  const env = { BERTH_CONTEXTS: contexts, NODE_OPTIONS: `--import ${join(folder, 'loader.mjs')}` }
  for (const args of [['stop', 'web', '--url', url], ['rm', '-f', 'web', '--url', url], ['context', 'rm', 'one'], ['wait', 'web', '--url', url, '--timeout', '1m']]) t.strictSame(await berth(args, { env }), { code: 130, out: '', error: '' }, args.join(' '))
  t.strictSame(seen, [], 'no server was asked')
  t.match(await readFile(contexts, 'utf8'), '"one"')
})

t.test('names that others chose move no cursor', async (t) => {
  const { url } = await origin(t, (_request, reply) => { reply.end(JSON.stringify([{ id: 'abc', name: 'x\u001b[2J\u202e', image: 'a\nb', state: 'Running', created_at: new Date().toISOString() }])) })
  for (const args of [['ps'], ['ps', '--format', '{{name}} {{image}}']]) {
    const { out } = await berth([...args, '--url', url])
    for (const character of ['\u001b', '\u202e']) t.notOk(out.includes(character), args.join(' '))
    t.match(out, /x\\u001b\[2J\\u202e/)
  }
})

t.test('lists are read page by page, in every format', async (t) => {
  const { url, seen } = await origin(t, (request, reply) => {
    const after = new URL(request.url ?? '', 'http://x').searchParams.get('after')
    if (after === null) reply.setHeader('link', '</instances?after=a&limit=500>; rel="next"')
    reply.end(JSON.stringify([{ id: after === null ? 'a' : 'b', name: 'n', image: 'i', state: 'Running', created_at: '2026-01-01T00:00:00Z' }]))
  })
  t.equal((await berth(['ps', '-q', '--url', url])).out, 'a\nb\n')
  t.equal(seen.length, 2)
  t.strictSame((JSON.parse((await berth(['ps', '--json', '--url', url])).out) as { id: string }[]).map(({ id }) => id), ['a', 'b'])
  t.equal((await berth(['ps', '--format', 'jsonl', '--url', url])).out.trimEnd().split('\n').length, 2)
  t.equal((await berth(['ps', '--format', '{{id}}={{state}}', '--url', url])).out, 'a=Running\nb=Running\n')
  t.match((await berth(['ps', '--format', 'yaml', '--url', url])).out, /^- id: a$/m)
  t.match(await berth(['ps', '--format', 'xml', '--url', url]), { code: 2, error: /table, json, jsonl, yaml/ })
})

t.test('the file of contexts is written to no place that others have prepared, and its keys stay nowhere when that fails', async (t) => {
  const folder = testFolder(t, { theirs: '', folder: { inner: '' } })
  const file = join(folder, 'contexts.json')
  await symlink('theirs', `${file}.${process.pid}.making`)
  await writeContexts(file, { contexts: { here: { url: 'http://127.0.0.1:1', token: 'secret' } } })
  t.equal(await readFile(join(folder, 'theirs'), 'utf8'), '')
  t.equal((await stat(file)).mode & 0o777, 0o600)
  t.match(await readFile(file, 'utf8'), 'secret')
  await t.rejects(writeContexts(join(folder, 'folder'), { contexts: {} }), { name: 'Failure', message: /folder cannot be written: EISDIR/ })
  t.strictSame((await readdir(folder)).filter((name) => name.endsWith('.making')), [`contexts.json.${process.pid}.making`])
})
