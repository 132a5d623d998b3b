// One connection of the proxy by itself, on a real one to a server that notes what it gets.
import t, { type Test } from 'tap'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Refusal } from '../../proxy/contract/reasons.ts'
import type { OriginCall, OutgoingHead } from '../../proxy/upstream/http1/call.ts'
import { OriginConnection } from '../../proxy/upstream/http1/connection.ts'
import { loopback } from './helpers/network.ts'
import { eventually } from '../helpers/eventually.ts'

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
  connection.open(socket)
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
