// What passes between a client and the store, with a store of the test's own.
import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders, type IncomingMessage, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createGateway } from '../../../plugins/registry/gateway.ts'
import { temporaryFolder } from '../../helpers/images-app.ts'
import { eventually } from '../../helpers/eventually.ts'

/** A gateway in front of a store that answers so; the address of the gateway. */
async function startGateway (t: Test, answer: RequestListener): Promise<{ host: string, port: number }> {
  const socketPath = join(await temporaryFolder(t), 'store.sock')
  const store = createServer(answer).listen(socketPath)
  const gateway = createGateway({ store: { socketPath: () => socketPath, said: () => '' }, log: pino({ level: 'silent' }) })
  const front = createServer((request, response) => { gateway.serve(request, response, String(request.headers['x-owner'])) }).listen(0, '127.0.0.1')
  await Promise.all([once(store, 'listening'), once(front, 'listening')])
  t.teardown(() => {
    gateway.close()
    front.closeAllConnections()
    front.close()
    store.closeAllConnections()
    store.close()
  })
  const address = front.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port')
  return { host: '127.0.0.1', port: address.port }
}

t.test('a client that wants its connection closed has that, and the store is not asked to close its own', async (t) => {
  const seen: IncomingHttpHeaders[] = []
  const place = await startGateway(t, (request, response) => {
    seen.push(request.headers)
    request.resume().on('end', () => { response.writeHead(202).end() })
  })
  for (const connection of ['close', 'keep-alive', 'close, x-own']) {
    const call = request({ ...place, method: 'PATCH', path: '/v2/a/blobs/uploads/1', headers: { connection, 'x-own': 'a', 'content-length': '5' } }).end('bytes')
    const answer = await new Promise<IncomingMessage>((resolve, reject) => { call.once('response', resolve).once('error', reject) })
    t.equal(answer.resume().statusCode, 202)
    t.equal(answer.headers.connection, connection.startsWith('close') ? 'close' : 'keep-alive')
  }
  t.same(seen.map(({ connection, 'content-length': length }) => [connection, length]), [['keep-alive', '5'], ['keep-alive', '5'], ['keep-alive', '5']])
  t.same(seen.map((headers) => headers['x-own']), ['a', 'a', undefined], 'what the client has named as its connection\'s stays with it')
})

t.test('connections to the store end with their answers', async (t) => {
  const sockets = new Set<Socket>()
  const place = await startGateway(t, ({ socket }, response) => {
    sockets.add(socket)
    response.end('x')
  })
  for (let count = 0; count < 10; count++) t.equal(await (await fetch(`http://${place.host}:${place.port}/v2/_catalog`)).text(), 'x')
  t.equal(sockets.size, 10)
  // Each is ended behind its answer.
  t.ok(await eventually('they are closed', () => [...sockets].every(({ closed }) => closed)))
})

t.test('an owner whose requests never end keeps nobody else from the store', async (t) => {
  let stalled = 0
  const place = await startGateway(t, (request, response) => {
    if (request.headers['x-owner'] === 'other') return response.end('x')
    stalled++
  })
  const hanging = Array.from({ length: 200 }, () => {
    const call = request({ ...place, method: 'PATCH', path: '/v2/a/blobs/uploads/1', headers: { 'x-owner': 'one', 'content-length': '5' } })
    call.on('error', () => undefined).write('b')
    return call
  })
  await eventually('as many as one may have hang', () => stalled === 128)
  const answer = await fetch(`http://${place.host}:${place.port}/v2/_catalog`, { headers: { 'x-owner': 'other' }, signal: AbortSignal.timeout(10_000) })
  t.equal(await answer.text(), 'x')
  t.equal(stalled, 128, 'the others of the first owner wait')
  for (const call of hanging) call.destroy()
})
