// Requests through a real nginx to programs behind real TAPs.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import t from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../../helpers/eventually.ts'
import { findProcesses } from '../../../plugins/ingress/process/find.ts'
import { IngressRepository } from '../../../plugins/ingress/repository.ts'
import { hostile } from './hostile.ts'
import { setStage, skipReason, type Server, type Stage } from './stage.ts'

const PORTS: Readonly<Record<string, number>> = { 'closed-port.test': 9, 'talkative.test': 8082, 'grpc.secure.test': 8081 }
const to = (hostname: string, more: Record<string, unknown> = {}, instance = 'web') => ({ match: { hostname }, target: { instance, port: 8080 }, ...more })

t.test('programs in instances are reached by name', { skip: skipReason() }, async (t) => {
  const stage = await setStage(t)
  const guest = await stage.instance('web')
  await stage.instance('other')
  const leftKey = join(stage.paths.keys, 'leaf-0123456789abcdef.key')
  await mkdir(stage.paths.keys, { recursive: true, mode: 0o700 })
  await writeFile(leftKey, 'of a server that was killed')
  let server = await stage.server()
  const { ingresses } = server
  const record = await ingresses.create({
    name: 'site',
    rules: [
      to('web.test'), to('*.secure.test', { tls: true, redirect_http: true }), to('one.secure.test', { tls: true }, 'other'), to('grpc.secure.test', { tls: true, target: undefined }), to('{app}.preview.test', { target: undefined }, '{app}'),
      { match: { hostname: 'web.test', path: '/other' }, target: { instance: 'other', port: 8080 } },
      to('locked.test', { request_header_auth: { header: 'X-Preview-Key', value: 'k'.repeat(40) } }),
      to('closed-port.test', { target: undefined }), to('talkative.test', { target: undefined }), to('plain.test')
    ].map((rule) => ({ ...rule, target: rule.target ?? { instance: rule.match.hostname.startsWith('{') ? '{app}' : 'web', port: PORTS[rule.match.hostname] ?? 8080 } }))
  })
  t.match(ingresses.view(record), { served: true }, server.log())
  const ca = await ingresses.authority()
  t.notOk(existsSync(leftKey), 'a key that openssl has left behind is gone')

  await t.test('with the client and the scheme in the standard headers, whatever the client says', async (t) => {
    const { status, body } = await stage.ask({ path: '/a?b=c', headers: { 'x-forwarded-for': '6.6.6.6', 'x-real-ip': '6.6.6.6', forwarded: 'for=6.6.6.6', proxy: 'http://evil', 'x-forwarded-proto': 'gopher' } })
    t.equal(status, 200, body)
    const { headers, url, name } = JSON.parse(body)
    t.match({ name, url }, { name: 'web', url: '/a?b=c' })
    t.match(headers, { host: `web.test:${stage.http}`, 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', 'x-forwarded-proto': 'http' })
    t.notOk('forwarded' in headers || 'proxy' in headers)
  })

  await t.test('without a session of the console, whose cookie a browser sends to each port of a host', async (t) => {
    for (const [sent, arrives] of [
      ['a=1; berth_session=secret; b=2', 'a=1; b=2'], ['berth_session=secret', undefined], ['__Host-berth_session=secret; berth_session=secret; b=2', 'b=2'], ['a=1; berth_session=secret', 'a=1;'],
      ['berth_session=secret; berth_session=secret; berth_session=secret; b=2', undefined], ['my_berth_session=1; a=berth_session=1', 'my_berth_session=1; a=berth_session=1'], ['a=1; b=2', 'a=1; b=2']
    ] as const) {
      const { status, body } = await stage.ask({ headers: { cookie: sent } })
      t.equal(status, 200, body)
      t.equal(JSON.parse(body).headers.cookie, arrives, sent)
    }
    t.notMatch((await stage.ask({ headers: { cookie: ['a=1', 'berth_session=secret'] } })).body, 'secret')
  })

  await t.test('by TLS with a certificate of the own authority, also for a wildcard, and plain HTTP is sent there', async (t) => {
    t.match(await stage.ask({ host: 'any.secure.test', tls: 'any.secure.test', ca }), { status: 200, body: /"name":"web".*"x-forwarded-proto":"https"/ })
    t.match(await stage.ask({ host: 'one.secure.test', tls: 'one.secure.test', ca }), { status: 200, body: /"name":"other"/ })
    t.match(await stage.ask({ host: 'any.secure.test', path: '/x?y' }), { status: 308, headers: { location: `https://any.secure.test:${stage.https}/x?y` } })
    const file = await stat(join(stage.paths.certificates, 'one.secure.test.pem'))
    t.equal(file.mode & 0o777, 0o600)
  })

  await t.test('over HTTP/2', async (t) => {
    const session = connectHttp2(`https://one.secure.test:${stage.https}`, { ca, lookup: toLoopback } as object)
    const stream = session.request({ ':path': '/h2' })
    const [headers] = await once(stream, 'response')
    t.equal(headers[':status'], 200)
    t.match(await text(stream), /"url":"\/h2"/)
    session.close()
  })

  await t.test('by gRPC, with messages both ways and the status in a trailer', async (t) => {
    const session = connectHttp2(`https://grpc.secure.test:${stage.https}`, { ca, lookup: toLoopback } as object)
    const stream = session.request({ ':method': 'POST', ':path': '/pkg.Service/Call', 'content-type': 'application/grpc', te: 'trailers' })
    const trailers = once(stream, 'trailers')
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]))
    const [headers] = await once(stream, 'response')
    t.match(headers, { ':status': 200, 'content-type': 'application/grpc' }, await readFile(stage.paths.log, 'utf8'))
    t.equal((await buffer(stream)).toString('hex'), '00000000020801')
    t.match((await trailers)[0], { 'grpc-status': '0', 'grpc-message': 'https' })
    session.close()
  })

  await t.test('by the longest path and by captures of the host', async (t) => {
    for (const [ask, name] of [[{ path: '/other' }, 'other'], [{ path: '/other/x' }, 'other'], [{ path: '/others' }, 'web'], [{ host: 'other.preview.test' }, 'other'], [{ host: 'WEB.preview.TEST' }, 'web']] as const) {
      t.match(await stage.ask(ask), { status: 200, body: new RegExp(`"name":"${name}"`) }, JSON.stringify(ask))
    }
    t.match(await stage.ask({ host: 'nobody.preview.test' }), { status: 503, body: /There is no instance nobody/ })
    t.match(await stage.ask({ host: 'a.b.preview.test' }), { status: 404 })
    t.match(await stage.ask({ host: 'unknown.test' }), { status: 404, body: /nothing at this address/ })
  })

  await t.test('with a WebSocket, and no other protocol', async (t) => {
    const socket = new WebSocket(`ws://127.0.0.1:${stage.http}/`, { headers: { host: 'web.test' } })
    await once(socket, 'open')
    socket.send('hello')
    const [said] = await once(socket, 'message')
    t.equal(String(said), 'web hello')
    socket.close()
    const { body } = await stage.ask({ headers: { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAARAAAAAAAIAAAAA' } })
    t.notOk('upgrade' in JSON.parse(body).headers)
  })

  await t.test('an answer and a body arrive while they are being sent', async (t) => {
    const stream = httpRequest({ host: '127.0.0.1', port: stage.http, path: '/stream', headers: { host: 'web.test' }, agent: false }).end()
    const [response] = await once(stream, 'response')
    const [first] = await once(response, 'data')
    t.equal(String(first), 'data: first\n\n')
    stream.destroy()
    const upload = httpRequest({ host: '127.0.0.1', port: stage.http, path: '/upload', method: 'POST', headers: { host: 'web.test' }, agent: false })
    upload.write('12345')
    const [answer] = await once(upload, 'response')
    const [counted] = await once(answer, 'data')
    t.equal(String(counted), '5\n', 'the program has the first bytes, and its answer is here, before the rest is sent')
    upload.end('6')
    t.match(await text(answer), /end/)
  })

  await t.test('a secret header is asked for', async (t) => {
    t.match(await stage.ask({ host: 'locked.test' }), { status: 403, body: /x-preview-key/ })
    t.match(await stage.ask({ host: 'locked.test', headers: { 'x-preview-key': 'wrong' } }), { status: 403 })
    t.match(await stage.ask({ host: 'locked.test', headers: { 'x-preview-key': 'k'.repeat(40) } }), { status: 200 })
    t.match(await stage.ask({ host: 'locked.test' }), { status: 403 }, 'what was answered to one is not kept for the next')
    t.notMatch(JSON.stringify(ingresses.view(record)), 'kkkk')
  })

  await t.test('the program\'s own errors pass, and what nginx finds out is said', async (t) => {
    t.match(await stage.ask({ path: '/failing' }), { status: 503, body: 'the program itself' })
    t.match(await ingresses.current(record), { served: true })
    t.match(await stage.ask({ host: 'closed-port.test' }), { status: 502, body: /does not answer on this port/ })
    t.match(await eventually('what the request has shown', async () => { const view = await ingresses.current(record); return !view.served && view }), { reason: /^closed-port\.test: nobody took connections at port 9 of the instance web when it was last asked, at 20/ })
  })

  await hostile(t, stage, guest, ca)

  await t.test('an instance that does not run answers 503 with its state at once, and its ingress says so', async (t) => {
    await change(stage, server, 'web', 'Stopped')
    t.match(await stage.ask({}), { status: 503, body: /web cannot be woken: it is Stopped/ })
    t.match(ingresses.view(record), { served: false, reason: /Stopped/ })
    await change(stage, server, 'web', 'Running')
    t.match(await stage.ask({}), { status: 200 })
  })

  await t.test('an instance that sleeps is woken, and the request that came is served; while it is called it is kept awake', async (t) => {
    await change(stage, server, 'other', 'Standby')
    t.match(ingresses.view(record), { served: true })
    t.match(await stage.ask({ path: '/other' }), { status: 200, body: /"name":"other"/ })
    t.same(stage.woken, ['other'])
    const id = [...stage.instances.values()].find(({ name }) => name === 'other')?.id
    t.equal(stage.leases.findLast((lease) => lease.startsWith(`${id} `)), `${id} ingress`)
  })

  await t.test('requests are logged for each instance, without what follows a question mark', async (t) => {
    const entries = await eventually('the line of the request', async () => (await ingresses.requests('web', 1000)).filter(({ path }) => path === '/a'))
    t.match(entries[0], { client: '127.0.0.1', protocol: 'HTTP/1.1', tls: false, method: 'GET', host: 'web.test', path: '/a', status: 200, ingress_id: record.id })
    const others = await eventually('those of the other instance', async () => {
      const found = await ingresses.requests('other', 1000)
      return found.length > 0 && found
    })
    t.ok(others.every(({ path }) => path !== '/a'), 'each instance has its own')
  })

  await t.test('what nginx writes of a request that ends after its instance was deleted does not stay', async (t) => {
    const late = join(stage.paths.requests, `${'gone'.padEnd(24, '0')}.jsonl`)
    await writeFile(late, '{}\n')
    t.ok(await eventually('it is gone', () => !existsSync(late), { limitMs: 30_000 }))
  })

  await t.test('requests are told as they come, also when the log is put aside, until the instance is deleted', async (t) => {
    const gone = new AbortController()
    const told: string[] = []
    const reading = (async () => { for await (const text of ingresses.follow('web', gone.signal)) told.push(text) })()
    await eventually('the beginning', () => told.length > 0)
    await stage.ask({ path: '/before?secret' })
    await eventually('a request', () => told.join('').includes('"path":"/before"'))
    const log = join(stage.paths.requests, `${'web'.padEnd(24, '0')}.jsonl`)
    await rename(log, `${log}.1`)
    // nginx loses the line at which it finds out, when it has held the file for 5 s by then.
    await eventually('what comes meanwhile', async () => {
      await stage.ask({ path: '/late' })
      return told.join('').includes('"path":"/late"')
    })
    await eventually('a log of its own', async () => {
      await stage.ask({ path: '/new' })
      return existsSync(log)
    })
    await stage.ask({ path: '/after' })
    await eventually('what is written to the next one', () => told.join('').includes('"path":"/after"'))
    t.equal(told.join('').split('"path":"/before"').length, 2, 'each once')
    t.notMatch(told.join(''), /secret/)
    gone.abort()
    await reading
    t.throws(() => ingresses.follow('nobody', gone.signal), { code: 'not_found' })
  })

  await t.test('connections live on, and known hosts are served, while the server is away', async (t) => {
    const socket = new WebSocket(`ws://127.0.0.1:${stage.http}/`, { headers: { host: 'web.test' } })
    await once(socket, 'open')
    await eventually('what changed is settled', () => !server.ingresses.isSettling)
    t.match(await stage.ask({ host: 'plain.test' }), { status: 200 })
    await server.crash()
    t.match(await stage.ask({ host: 'plain.test', path: '/' }), { status: 200, body: /"name":"web"/ })
    t.match(await stage.ask({ host: 'never-asked.test' }), { status: 503, body: /server that knows this host is away/ })
    socket.send('still')
    t.equal(String((await once(socket, 'message'))[0]), 'web still')
    server = await stage.server()
    socket.send('again')
    t.equal(String((await once(socket, 'message'))[0]), 'web again', 'the next server takes nginx over')
    socket.close()
    t.match(await stage.ask({ host: 'never-asked.test' }), { status: 404 })
  })

  await t.test('a host of which a killed server has not told nginx is served by the same nginx once the next one runs', async (t) => {
    await server.crash()
    const [before] = (await findProcesses(stage.paths.folder)).filter(({ isMaster }) => isMaster)
    const database = await stage.world.openDatabase()
    const rule = { hostname: '*.late.test', port: stage.https, path: '/', instance: 'web', targetPort: 8080, tls: true, redirectHttp: false }
    t.ok(await new IngressRepository(database, 'host-a').insert({ id: 'late', name: 'late', createdAt: Date.now(), tags: {}, rules: [rule] }, [`${stage.https} *.late.test /`]))
    await database.destroy()
    server = await stage.server()
    await eventually('it is served', async () => (await stage.ask({ host: 'any.late.test', tls: 'any.late.test', ca }).catch(() => undefined))?.status === 200)
    t.match((await findProcesses(stage.paths.folder)).filter(({ isMaster }) => isMaster), [{ identity: before?.identity }])
    await eventually('nobody waits for it any more', () => !existsSync(`${stage.paths.openHosts}.unread`))
    await server.ingresses.delete('late')
  })

  await t.test('what is deleted is gone at once, and its host free', async (t) => {
    t.match(await stage.ask({ host: 'plain.test' }), { status: 200 })
    await server.ingresses.delete('site')
    t.match(await stage.ask({ host: 'plain.test' }), { status: 404 })
    await server.ingresses.create({ name: 'site', rules: [{ match: { hostname: 'plain.test' }, target: { instance: 'other', port: 8080 } }] })
    t.match(await stage.ask({ host: 'plain.test' }), { status: 200, body: /"name":"other"/ })
  })

  await t.test('nothing listens once it has ended, and none of its figures is told', async (t) => {
    const ofNginx = /^berth_ingress_(?:requests_total|connections) .*$/gm
    t.match((await server.figures()).match(ofNginx), [/^berth_ingress_connections \d+$/, /^berth_ingress_requests_total [1-9]\d*$/])
    await server.stop()
    t.notMatch(await server.figures(), ofNginx, 'a counter at 0 would make all of its past count as new')
    const socket = connect(stage.http, '127.0.0.1')
    const [error] = await once(socket, 'error')
    t.match(error, { code: 'ECONNREFUSED' })
  })
})

const toLoopback = (_host: string, _options: object, done: (error: null, found: object[]) => void): void => { done(null, [{ address: '127.0.0.1', family: 4 }]) }

async function change (stage: Stage, { ingresses }: Server, name: string, state: 'Running' | 'Standby' | 'Stopped'): Promise<void> {
  for (const [id, facts] of stage.instances) if (facts.name === name) stage.instances.set(id, { ...facts, state })
  await ingresses.instanceChanged()
}
