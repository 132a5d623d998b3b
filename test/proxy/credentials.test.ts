import t from 'tap'
import { once } from 'node:events'
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { Agent, request } from 'node:http'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { answered, ask, exchangeBytes, openTls } from './helpers/guest.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { figure, workersOf } from './helpers/workers.ts'
import { openAuthority } from '../../proxy/tls/authority.ts'

/** Every request of it goes over one connection, one after another. */
class OneConnection extends Agent {
  readonly #socket: Socket

  constructor (socket: Socket) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#socket = socket
  }

  override createConnection (): Socket {
    return this.#socket
  }
}

t.test('A34: nothing is ever put into a request over plain HTTP', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100, { plain: true })
  const answer = await ask(stage.proxy, stage.guest, { headers: { Host: `api.good.test:${stage.plainPort}`, authorization: 'Bearer mock-API_KEY' } })
  t.equal(answer.status, 200)
  t.notMatch(origin.bytes(), SECRET)
  t.match(origin.bytes(), /mock-API_KEY/)
  t.same((await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0))[0]?.injected, [])
})

t.test('A35: whatever the guest calls the header, exactly one arrives, and it is ours', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ header: 'X-Api-Key', format: '${value}' }]))
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const lines = ['X-Api-Key: a', 'x-api-key: b', 'X_Api_Key: c', 'x-API_key: d', 'Connection: x-api-key, close'].join('\r\n')
  await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n${lines}\r\n\r\n`)
  const raw = origin.seen[0]?.raw ?? []
  const found = raw.filter((name, index) => index % 2 === 0 && /^x[-_]api[-_]key$/i.test(name))
  t.same(found, ['X-Api-Key'])
  t.equal(origin.seen[0]?.headers['x-api-key'], SECRET)
})

t.test('of the rules that set one header, the host gets the most precise one alone, whatever their order', async (t) => {
  const stage = await setStage(t)
  const hosts = ['api.good.test', 'web.good.test', 'good.test'] as const
  const origins = new Map(await Promise.all(hosts.map(async (host, index) => [host, await stage.origin(100 + index, { hosts: [host] })] as const)))
  const rules = [
    { credential: 'WIDE', mock: 'mock-WIDE', header: 'X-Api-Key', format: '${value}', value: 'secret-of-all-hosts', hosts: undefined },
    { credential: 'EXACT', mock: 'mock-EXACT', header: 'x_api_key', format: '${value}', value: 'secret-of-one-host', hosts: ['api.good.test'] },
    { credential: 'WILD', mock: 'mock-WILD', header: 'X-API-KEY', format: '${value}', value: 'secret-of-a-domain', hosts: ['*.good.test'] }
  ]
  for (const [index, order] of [rules, [...rules].reverse()].entries()) {
    await stage.proxy.policy(vmPolicy(stage.guest, order))
    for (const [name, value, credential] of [['api.good.test', 'secret-of-one-host', 'EXACT'], ['web.good.test', 'secret-of-a-domain', 'WILD'], ['good.test', 'secret-of-all-hosts', 'WIDE']] as const) {
      const socket = await openTls(stage.proxy, stage.guest, name)
      const answer = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host(name)}\r\nX-Api-Key: mine\r\nConnection: close\r\n\r\n`)
      const seen = origins.get(name)?.seen.at(-1)
      t.match(answer, /^HTTP\/1\.1 200/)
      t.same(seen?.raw.filter((_text, at) => at % 2 === 1 && /^secret-|^mine$/.test(seen.raw[at] ?? '')), [value], `${name}, order ${index}`)
      t.same((await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.at(-1)?.host === name)).at(-1)?.injected, [credential])
    }
  }
})

t.test('A37 and A38: headers that rules cannot set, and values that no header can hold, are refused with their place and without the value', async (t) => {
  const stage = await setStage(t)
  const refused = async (rule: Record<string, string>) => {
    const answer = await stage.proxy.call('PUT', '/policy', { revision: 1000, vms: [vmPolicy(stage.guest, [rule])] })
    t.equal(answer.status, 400, JSON.stringify(rule))
    t.notMatch(answer.body, 'top-secret')
    return String(JSON.parse(answer.body).message)
  }
  for (const header of ['Host', 'content-length', 'Transfer-Encoding', 'Connection', 'Upgrade', 'TE', 'Trailer', 'Proxy-Authorization', 'Expect', 'Forwarded', 'X-Forwarded-For', ':path', '', 'a b', 'x\r\ny', 'Content_Length']) {
    t.match(await refused({ header }), /^vms\[0\]\.rules\[0\]\.header: /, header)
  }
  for (const value of ['top-secret\r\nX: y', 'top-secret\n', 'top-secret\0', 'top-secret€', ' top-secret']) t.match(await refused({ value }), /^vms\[0\]\.rules\[0\]\.value: /)
  t.match(await refused({ format: 'Bearer' }), /^vms\[0\]\.rules\[0\]\.format: /)
  t.match(await refused({ format: 'a\n${value}' }), /^vms\[0\]\.rules\[0\]\.format: /)
  for (const body of ['{', '[]', '{"revision":1}', '{"revision":1,"vms":[],"more":1}', '{"revision":"top-secret","vms":[]}', '{"top-secret']) {
    const answer = await stage.proxy.call('PUT', '/policy', body)
    t.equal(answer.status, 400, body)
    t.notMatch(answer.body, 'top-secret')
  }
})

t.test('A40: a credential without a value is a 503, and neither the mock nor nothing goes out in its place', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value: '' }]))
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  t.equal(answer.status, 503)
  t.match(answer.text, /secret_unavailable/)
  t.equal(origin.connections(), 0)
})

t.test('A41: TRACE, CONNECT and OPTIONS with Max-Forwards 0, which give headers back, are refused', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const host = stage.host('api.good.test')
  for (const head of [`TRACE / HTTP/1.1\r\nHost: ${host}`, `CONNECT ${host} HTTP/1.1\r\nHost: ${host}`, `OPTIONS * HTTP/1.1\r\nHost: ${host}\r\nMax-Forwards: 0`]) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, `${head}\r\n\r\n`), /^HTTP\/1\.1 405 /, head)
  }
  t.equal(origin.connections(), 0)
})

t.test('A42: the mock goes to other hosts as it is', async (t) => {
  const stage = await setStage(t)
  const other = await stage.origin(101, { hosts: ['other.test'] })
  const answer = await ask(stage.proxy, stage.guest, {
    name: 'other.test', method: 'POST', path: '/?key=mock-API_KEY', headers: { Host: stage.host('other.test'), Authorization: 'Bearer mock-API_KEY', 'Content-Length': 12 }, body: 'mock-API_KEY'
  })
  t.equal(answer.status, 200)
  t.notMatch(other.bytes(), SECRET)
  t.equal(other.seen[0]?.url, '/?key=mock-API_KEY')
  t.equal(other.seen[0]?.body.toString(), 'mock-API_KEY')
})

t.test('A43: a request that waits for 100-continue carries the header too', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const outgoing = request({ createConnection: () => socket, method: 'PUT', headers: { Host: stage.host('api.good.test'), Expect: '100-continue', 'Content-Length': 5 } })
  outgoing.flushHeaders()
  await once(outgoing, 'continue')
  const answer = answered(outgoing)
  outgoing.end('hello')
  t.equal((await answer).status, 200)
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
  t.equal(origin.seen[0]?.body.toString(), 'hello')
  t.equal(origin.seen[0]?.headers.expect, undefined)
  socket.destroy()
})

t.test('A45: a secret that an origin sends back in a header, a status line or a trailer reaches the guest as the mock, in each form that is known', async (t) => {
  const stage = await setStage(t)
  const encoded = Buffer.from(`user:${SECRET}`).toString('base64')
  await stage.origin(100, {
    answer (request, response) {
      response.writeHead(200, `OK ${SECRET}`, [
        'X-Echo', String(request.headers.authorization), 'Set-Cookie', `a=${SECRET}`, 'Set-Cookie', `b=${encodeURIComponent(SECRET)}`, 'X-Basic', `Basic ${encoded}`,
        'X-Url', Buffer.from(SECRET).toString('base64url'), 'Transfer-Encoding', 'chunked', 'Trailer', 'X-Last'
      ])
      response.addTrailers({ 'X-Last': SECRET })
      response.end('body')
    }
  })
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
  const bytes = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`, text => text.includes('\r\n0\r\n') && text.endsWith('\r\n\r\n'))
  socket.destroy()
  t.notMatch(bytes, SECRET)
  t.notMatch(bytes, Buffer.from(SECRET).toString('base64url'))
  t.notMatch(bytes, encoded.slice(8, -4))
  t.match(bytes, /X-Echo: Bearer mock-API_KEY\r\n/)
  t.match(bytes, /X-Last: mock-API_KEY\r\n/)
  t.match(bytes, /^HTTP\/1\.1 200 OK mock-API_KEY\r\n/)
})

t.test('A46: each of a hundred requests carries the old or the new value whole, and none the old one after the answer to the change', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const agents = await Promise.all(Array.from({ length: 50 }, async () => {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    return new OneConnection(socket)
  }))
  const stop = new AbortController()
  const loops = agents.map(async (agent, index) => {
    while (!stop.signal.aborted) await answered(request({ agent, path: `/${index}`, headers: { Host: stage.host('api.good.test') } }).end())
  })
  const values = ['value-one-1111', 'value-two-2222', 'value-three-3333']
  let old = SECRET
  for (const value of values) {
    const before = origin.seen.length
    while (origin.seen.length < before + 100) await new Promise(resolve => setImmediate(resolve))
    await stage.proxy.policy(vmPolicy(stage.guest, [{ value }]))
    // What the origin's parser has not yet told of was written before: it is let through by asking for one more answer of each connection.
    const after = origin.seen.length
    while (origin.seen.length < after + 100) await new Promise(resolve => setImmediate(resolve))
    const late = origin.seen.slice(after + 60).filter(seen => seen.headers.authorization === `Bearer ${old}`)
    t.equal(late.length, 0)
    old = value
  }
  stop.abort()
  await Promise.all(loops)
  const all = new Set(origin.seen.map(seen => seen.headers.authorization))
  t.same([...all].sort(), [SECRET, ...values].map(value => `Bearer ${value}`).sort())
  await stage.proxy.policy(vmPolicy(stage.guest))
  await answered(request({ agent: agents[0], headers: { Host: stage.host('api.good.test') } }).end())
  t.equal(origin.seen.at(-1)?.headers.authorization, undefined, 'a rule that is gone is gone with the next request of an open connection')
  for (const agent of agents) agent.destroy()
})

t.test('A46: a request that waits for its connection while the value changes carries the new one', async (t) => {
  const stage = await setStage(t)
  let arrived: (() => void) | undefined
  const reached = new Promise<void>(resolve => { arrived = resolve })
  let change: (() => void) | undefined
  const changed = new Promise<void>(resolve => { change = resolve })
  const certificate = {
    ...stage.authority.issue('api.good.test'),
    SNICallback: (_name: string, done: (error: Error | null) => void) => {
      arrived?.()
      void changed.then(() => done(null))
    }
  }
  const origin = await stage.origin(100, { certificate })
  const answer = ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  await reached
  await stage.proxy.policy(vmPolicy(stage.guest, [{ value: 'the-new-value' }]))
  change?.()
  t.equal((await answer).status, 200)
  t.equal(origin.seen[0]?.headers.authorization, 'Bearer the-new-value')
})

for (const [what, rules, expected] of [['changes', [{ value: 'the-new-value' }], 'Bearer the-new-value'], ['goes', [], undefined]] as const) {
  t.test(`A46: a request over HTTP/2 that waits for its origin to take one more carries no value of before when its credential ${what}`, async (t) => {
    const stage = await setStage(t)
    const seen: [path: string | undefined, value: string | undefined, body: string][] = []
    const held: ServerHttp2Stream[] = []
    await stage.origin(100, {
      http2 (server) {
        server.updateSettings({ maxConcurrentStreams: 1 })
        server.on('stream', (stream: ServerHttp2Stream, headers) => {
          stream.on('error', () => {})
          if (headers[':path'] === '/held') return held.push(stream)
          let body = ''
          stream.on('data', (piece: Buffer) => { body += piece.toString() })
          stream.on('end', () => {
            seen.push([headers[':path'], headers.authorization, body])
            stream.respond({ ':status': 204 }, { endStream: true })
          })
        })
      }
    })
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test', { alpn: ['h2'] })
    const session = connectHttp2('https://api.good.test', { createConnection: () => socket })
    t.teardown(() => session.destroy())
    const send = (path: string, body: string) => session.request({ ':authority': stage.host('api.good.test'), ':path': path, ':method': 'POST' }).end(body)
    // The origin's SETTINGS are known with its first answer.
    await once(send('/first', 'x'), 'response')
    send('/held', 'x').on('error', () => {})
    await eventually('the place is taken', () => held.length === 1)
    const waiting = ['one', 'two', 'three'].map(body => send('/waiting', body))
    const answers = Promise.all(waiting.map(async stream => (await once(stream, 'response'))[0][':status']))
    await eventually('they are under way', async () => await figure(stage.proxy, 'berth_egress_requests_under_way') === 4)
    await stage.proxy.policy(vmPolicy(stage.guest, rules))
    held[0]?.respond({ ':status': 204 }, { endStream: true })
    t.same(await answers, [204, 204, 204])
    t.same(seen.slice(1), ['one', 'two', 'three'].map(body => ['/waiting', expected, body]))
    const entries = await stage.proxy.audited(`vm-${stage.guest}`, all => all.length === 5)
    t.same(entries.filter(({ path }) => path === '/waiting').map(({ injected }) => injected), [1, 2, 3].map(() => expected === undefined ? [] : ['API_KEY']))
  })
}

t.test('A46: a refused revision and an older one leave the one that is enforced whole', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  t.equal((await stage.proxy.call('PUT', '/policy', { revision: 0, vms: [] })).status, 409)
  t.equal((await stage.proxy.call('PUT', '/policy', { revision: 9, vms: [vmPolicy(stage.guest, [{ header: 'Host' }])] })).status, 400)
  await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
})

t.test('A47: the secret is in no file, no log, no figure, no answer and no command line of the proxy', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, { answer: (request, response) => { response.writeHead(500, { 'x-echo': String(request.headers.authorization) }).end('no') } })
  await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: 'evil.test' } })
  await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 1)
  const texts = [stage.proxy.output(), (await stage.proxy.call('GET', '/metrics')).body, (await stage.proxy.call('GET', '/policy')).body, (await stage.proxy.call('GET', `/audit?vm=vm-${stage.guest}`)).body]
  for (const name of await readdir(stage.proxy.folder, { recursive: true, withFileTypes: true })) if (name.isFile()) texts.push(await readFile(join(name.parentPath, name.name), 'latin1'))
  const pids = [stage.proxy.process.pid, ...(await workersOf(stage.proxy)).map(({ pid }) => pid)]
  for (const pid of pids) for (const file of ['cmdline', 'environ']) texts.push(await readFile(`/proc/${pid}/${file}`, 'latin1'))
  t.ok(texts.length > 6)
  for (const text of texts) t.notOk(text.includes(SECRET))
})

t.test('A48: a key of the authority that others could have read, or that is not the certificate\'s, stops the start; the key is made with mode 0600', async (t) => {
  const top = testFolder(t, { one: {}, two: {} })
  const folder = join(top, 'one')
  const first = await openAuthority(folder)
  await chmod(join(folder, 'ca.key'), 0o600)
  t.equal((await openAuthority(folder)).certificatePem, first.certificatePem, 'it is read again, not made again')
  await chmod(join(folder, 'ca.key'), 0o640)
  await t.rejects(openAuthority(folder), /mode 640/)
  await chmod(join(folder, 'ca.key'), 0o600)
  await openAuthority(join(top, 'two'))
  await writeFile(join(folder, 'ca.crt'), await readFile(join(top, 'two', 'ca.crt')))
  await t.rejects(openAuthority(folder), /does not belong to the key/)
  await rm(join(folder, 'ca.key'))
  await t.rejects(openAuthority(folder), /has lost its key/)
})
