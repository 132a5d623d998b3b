// Connections of the proxy to one origin by themselves, on real ones to a server that notes what it gets.
import t, { type Test } from 'tap'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createSecureContext, createServer as createTls } from 'node:tls'
import { checkConfig } from '../../proxy/config/load.ts'
import { Refusal } from '../../proxy/contract/reasons.ts'
import type { OriginCall, OutgoingHead } from '../../proxy/upstream/http1/call.ts'
import { OriginConnection } from '../../proxy/upstream/http1/connection.ts'
import { Counters } from '../../proxy/log/counters.ts'
import { Origin } from '../../proxy/upstream/origin.ts'
import { OriginPool } from '../../proxy/upstream/origin-pool.ts'
import { Passing } from '../../proxy/upstream/passing.ts'
import type { OriginServices } from '../../proxy/upstream/services.ts'
import { OriginSockets } from '../../proxy/upstream/sockets.ts'
import { createTestAuthority } from './helpers/authority.ts'
import { loopback } from './helpers/network.ts'
import { eventually } from '../helpers/eventually.ts'

const LINGER_MS = 300
const REQUESTS = 8

/** A call that notes what becomes of it. */
class Call implements OriginCall {
  readonly events: unknown[] = []
  readonly #head: OutgoingHead | undefined

  constructor (head: Partial<OutgoingHead> | undefined) {
    this.#head = head === undefined ? undefined : { method: 'POST', path: '/', lines: [], body: 'chunked', ...head }
  }

  head (): OutgoingHead | undefined { return this.#head }
  sending (): void { this.events.push('sending') }
  answered ({ status }: { status: number }): void { this.events.push(status) }
  waiting (): void { this.events.push('waiting') }
  body (view: Buffer): void { this.events.push(view.toString()) }
  ended (trailers: readonly string[]): void { this.events.push(trailers) }
  failed (error: unknown): void { this.events.push(error instanceof Refusal ? error.code : 'failed') }
  fault (error: unknown): void { throw error }
}

/** An origin as a VM uses it, at an address where a server of the test listens. */
function originAt (address: AddressInfo | string | null, more: Partial<OriginServices> = {}): Origin {
  const port = typeof address === 'object' ? address?.port ?? 0 : 0
  return new Origin({ host: { name: 'api.good.test', family: 0 }, port, secure: more.originTrust !== undefined }, servicesWith(more), new Passing(REQUESTS))
}

function servicesWith (more: Partial<OriginServices>): OriginServices {
  const { limits } = checkConfig({ listen: { control: '/' }, ca: { directory: '/' }, audit: { file: '/' } })
  return {
    limits: { ...limits, connectionsPerHost: 2, requests: REQUESTS },
    resolve: async () => ({ addresses: [loopback(3)], ttlMs: 60_000 }),
    vet: () => undefined,
    originTrust: createSecureContext(),
    counters: new Counters(),
    ...more
  }
}

async function setConnection (t: Test) {
  const server = createServer().listen(0, loopback(3))
  await once(server, 'listening')
  const address = server.address()
  const socket = connect(typeof address === 'object' ? address?.port ?? 0 : 0, loopback(3))
  const [far]: Socket[] = await once(server, 'connection')
  const received: Buffer[] = []
  far?.on('data', (chunk: Buffer) => received.push(chunk))
  far?.on('error', () => {})
  const owner = { times: 0, gone: 0 }
  const connection = new OriginConnection({ free: () => { owner.times++ }, gone: () => { owner.gone++ } }, 1024)
  socket.on('data', (chunk: Buffer) => connection.read(chunk))
  connection.open(socket, new OriginSockets(new Passing(1), LINGER_MS))
  t.teardown(() => {
    socket.destroy()
    far?.destroy()
    server.close()
  })
  const text = () => Buffer.concat(received).toString('latin1')
  const until = async (holds: () => boolean): Promise<void> => { await eventually('it is so', holds, { pollMs: 2 }) }
  return { connection, far, owner, text, until }
}

t.test('a piece without a byte does not end a chunked body', async (t) => {
  const { connection, far, owner, text, until } = await setConnection(t)
  const call = new Call({})
  t.ok(connection.carry(call))
  for (const piece of ['one', '', 'two', '']) connection.write(Buffer.from(piece))
  connection.end(['X-Sum', '1'])
  await until(() => text().endsWith('\r\n\r\n') && text().includes('X-Sum'))
  t.equal(text(), 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\nX-Sum: 1\r\n\r\n')
  far?.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  await until(() => owner.times === 1)
  t.same(call.events, ['sending', 200, 'ok', []])
  t.ok(connection.usable)
})

for (const { pieces, name } of [{ pieces: ['four', '5'], name: 'longer' }, { pieces: ['abc'], name: 'shorter' }]) {
  t.test(`a body that is ${name} than its length ends the connection: what follows could be taken for the next request`, async (t) => {
    const { connection, owner, text, until } = await setConnection(t)
    const call = new Call({ body: 4, lines: ['Content-Length', '4'] })
    t.ok(connection.carry(call))
    for (const piece of pieces) connection.write(Buffer.from(piece))
    connection.end([])
    await until(() => owner.gone === 1)
    t.same(call.events, ['sending', 'bad_request'])
    t.ok(text().split('\r\n\r\n')[1]?.length !== 5)
    t.equal(owner.times, 0)
  })
}

t.test('trailers that could end their line end the connection', async (t) => {
  const { connection, owner, text, until } = await setConnection(t)
  const call = new Call({})
  connection.carry(call)
  connection.end(['X', 'a\r\nGET / HTTP/1.1'])
  await until(() => owner.gone === 1)
  t.same(call.events, ['sending', 'bad_request'])
  t.notMatch(text(), /GET/)
})

t.test('a header that is not wanted any more, or is none, leaves the connection as it was', async (t) => {
  const { connection, far, owner, text, until } = await setConnection(t)
  const [unwanted, none, good] = [new Call(undefined), new Call({ path: '/ HTTP/1.1\r\n\r\n' }), new Call({ method: 'GET', body: 0 })]
  t.notOk(connection.carry(unwanted))
  t.notOk(connection.carry(none))
  t.same([unwanted.events, none.events], [[], ['bad_request']])
  t.ok(connection.carry(good))
  await until(() => text() !== '')
  far?.write('HTTP/1.1 204 No Content\r\n\r\n')
  await until(() => owner.times === 1)
  t.equal(text(), 'GET / HTTP/1.1\r\n\r\n')
  t.same(good.events, ['sending', 204, []])
})

t.test('a call that was cancelled hears nothing more, and cannot end what came after it', async (t) => {
  const { connection, far, owner, text, until } = await setConnection(t)
  const [first, second] = [new Call({ method: 'GET', body: 0 }), new Call({ method: 'GET', body: 0, path: '/second' })]
  connection.carry(first)
  far?.write('HTTP/1.1 204 No Content\r\n\r\n')
  await until(() => owner.times === 1)
  connection.carry(second)
  connection.cancel(first)
  connection.leave(first)
  far?.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel')
  await until(() => second.events.length === 3)
  t.notOk(connection.diedUnused)
  connection.cancel(second)
  await until(() => owner.gone === 1)
  t.same(second.events, ['sending', 200, 'hel'])
  t.match(text(), /GET \/second/)
})

t.test('only a connection that served before, and closes without a word, may have died unused', async (t) => {
  for (const { served, word, expected } of [{ served: true, word: '', expected: true }, { served: false, word: '', expected: false }, { served: true, word: 'HTTP/1.1 2', expected: false }]) {
    const { connection, far, owner, text, until } = await setConnection(t)
    if (served) {
      connection.carry(new Call({ method: 'GET', body: 0 }))
      far?.write('HTTP/1.1 204 No Content\r\n\r\n')
      await until(() => owner.times === 1)
    }
    const call = new Call({ method: 'GET', body: 0, path: '/again' })
    connection.carry(call)
    await until(() => text().includes('/again'))
    far?.end(word)
    await until(() => owner.gone === 1)
    t.same(call.events, ['sending', 'failed'])
    t.equal(connection.diedUnused, expected, JSON.stringify({ served, word }))
  }
})

t.test('a connection whose origin does not read ends within a time once its user has left', async (t) => {
  const { connection, far, owner, until } = await setConnection(t)
  const call = new Call({ body: 'tunnel' })
  far?.pause()
  connection.carry(call)
  while (connection.writableLength < 1024 * 1024) connection.write(Buffer.alloc(64 * 1024))
  connection.leave(call)
  t.equal(owner.gone, 0)
  await until(() => owner.gone === 1)
})

t.test('a request that was given up before it had a connection is neither kept nor dialled for', async (t) => {
  let asked = 0
  const rejects: (() => void)[] = []
  const origin = originAt(null, { resolve: async () => { asked++; return await new Promise((_resolve, reject) => rejects.push(() => reject(new Refusal('resolve_timeout')))) } })
  const calls = Array.from({ length: 1000 }, () => new Call(undefined))
  for (const call of calls) origin.http1.request(call)
  for (const call of calls) origin.http1.withdraw(call)
  t.equal(asked, 1)
  const wanted = new Call({})
  origin.http1.request(wanted)
  for (const reject of rejects.splice(0)) reject()
  await eventually('the one that is wanted was tried', () => wanted.events.length > 0, { limitMs: 5_000 })
  t.same(wanted.events, ['resolve_timeout'])
  t.equal(asked, 1)
  t.same(calls.flatMap(({ events }) => events), [])
})

t.test('a dial ends with the last request that waits for it', async (t) => {
  const server = createServer().listen(0, loopback(3))
  await once(server, 'listening')
  t.teardown(() => server.close())
  const origin = originAt(server.address(), { originTrust: createSecureContext() })
  const [first, second] = [new Call({}), new Call({})]
  for (const call of [first, second]) origin.http1.request(call)
  // Neither has an answer to its handshake.
  const far: Socket[] = []
  server.on('connection', socket => far.push(socket.resume()))
  await eventually('both are dialled', () => far.length === 2, { limitMs: 5_000 })
  origin.http1.withdraw(first)
  await eventually('one dial has ended', () => far.filter(({ closed }) => closed).length === 1, { limitMs: 5_000 })
  const spoken = { opened () {}, failed () {} }
  origin.http2.request(spoken)
  await eventually('a third is dialled', () => far.length === 3, { limitMs: 5_000 })
  origin.http2.withdraw(spoken)
  origin.close()
  await eventually('all have ended', () => far.every(({ closed }) => closed), { limitMs: 5_000 })
  t.same([first.events, second.events], [[], ['policy_changed']])
})

t.test('of a name with very many addresses that are dead only the first are tried', async (t) => {
  let dialled = 0
  const count = (): void => { dialled++ }
  subscribe('net.client.socket', count)
  t.teardown(() => unsubscribe('net.client.socket', count))
  const server = createServer().listen(0, loopback(4))
  await once(server, 'listening')
  const place = server.address()
  server.close()
  await once(server, 'close')
  const origin = originAt(place, { resolve: async () => ({ addresses: Array.from({ length: 100 }, (_, index) => loopback(100 + index)), ttlMs: 60_000 }) })
  const call = new Call({})
  origin.http1.request(call)
  await eventually('it has failed', () => call.events.length > 0, { limitMs: 5_000 })
  t.same(call.events, ['connect_failed'])
  t.equal(dialled, 8)
})

t.test('names that a VM has resolved and gives up are bounded, and refused with a reason', async (t) => {
  const asked: string[] = []
  const answers: (() => void)[] = []
  const pool = new OriginPool(servicesWith({ resolve: async name => { asked.push(name); return await new Promise((_resolve, reject) => answers.push(() => reject(new Refusal('resolve_failed')))) } }))
  const ask = (index: number): Call => {
    const call = new Call({})
    const origin = pool.get({ name: `name-${index}.test`, family: 0 }, { secure: false, port: 80 })
    origin.http1.request(call)
    if (index >= 0) origin.http1.withdraw(call)
    return call
  }
  for (let index = 0; index < 1000; index++) ask(index)
  t.equal(asked.length, 2 * REQUESTS)
  const refused = ask(-1)
  await eventually('it is refused', () => refused.events.length > 0, { limitMs: 5_000 })
  t.same(refused.events, ['too_many_requests'])
  for (const answer of answers.splice(0)) answer()
  await delay(0)
  ask(-1)
  t.equal(asked.at(-1), 'name--1.test', 'and taken again when the others have ended')
  pool.close()
})

t.test('what an origin says before it was asked is no answer: the connection that was offered HTTP/2 ends by it', async (t) => {
  const authority = createTestAuthority()
  let connections = 0
  const server = createTls({ ...authority.issue('api.good.test'), ALPNProtocols: ['http/1.1'] }, socket => {
    const isFirst = connections++ === 0
    socket.on('error', () => {})
    if (isFirst) socket.end('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    else socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  }).listen(0, loopback(3))
  await once(server, 'listening')
  const origin = originAt(server.address(), { originTrust: createSecureContext({ ca: authority.certificatePem }) })
  t.teardown(() => {
    origin.close()
    server.close()
  })
  const spoken = await new Promise((resolve, reject) => origin.http2.request({ opened: resolve, failed: reject }))
  t.equal(spoken, undefined, 'it speaks HTTP/1.1')
  // Its word arrives meanwhile.
  await delay(200)
  const call = new Call({ body: 0 })
  origin.http1.request(call)
  await eventually('the request is answered', () => call.events.length > 3, { limitMs: 5_000, explain: () => JSON.stringify(call.events) })
  t.same(call.events, ['sending', 200, 'ok', []])
  t.equal(connections, 2)
})
