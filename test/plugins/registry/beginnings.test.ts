// Uploads count for who begins them before the store has answered, and nothing stays of one whose client has left: with a store of the test's own.
import { once } from 'node:events'
import { createServer, request, type ClientRequest, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { createEventBus } from '../../../core/jobs/events.ts'
import { createGateway } from '../../../plugins/registry/gateway.ts'
import { createRelay } from '../../../plugins/registry/relay.ts'
import { readRequest } from '../../../plugins/registry/requests.ts'
import { Uploads } from '../../../plugins/registry/uploads.ts'
import { eventually } from '../../helpers/eventually.ts'
import { temporaryFolder } from '../../helpers/images-app.ts'

interface Place {
  /** begins an upload */
  begin (owner?: string): ClientRequest
  /** statuses of the answers */
  readonly statuses: number[]
  /** requests that the store holds; it answers when it is told to */
  readonly held: ServerResponse[]
  readonly dropped: string[]
}

async function start (t: Test): Promise<Place> {
  const log = pino({ level: 'silent' })
  const held: ServerResponse[] = []
  const dropped: string[] = []
  const statuses: number[] = []
  const socketPath = join(await temporaryFolder(t), 'store.sock')
  const store = createServer((_request, response) => { held.push(response) }).listen(socketPath)
  const gateway = createGateway({ store: { socketPath: () => socketPath, said: () => '' }, log })
  const disk = { free: async () => ({ bytes: 1, inodes: 1 }), check: async () => undefined, watch: () => ({ signal: new AbortController().signal, count: () => undefined, stop: () => undefined }) }
  const uploads = new Uploads({ disk, store: { dropUpload: async (_repository, id) => { dropped.push(id) } }, log, maxBytes: 1 })
  const relay = createRelay({ gateway, events: createEventBus(log), uploads, log })
  const front = createServer((request, response) => {
    relay.serve(request, response, { asked: readRequest(request.method ?? '', request.url ?? ''), host: 'x' }, String(request.headers['x-owner']))
  }).listen(0, '127.0.0.1')
  await Promise.all([once(store, 'listening'), once(front, 'listening')])
  t.teardown(() => {
    uploads.close()
    gateway.close()
    for (const server of [front, store]) {
      server.closeAllConnections()
      server.close()
    }
  })
  const address = front.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen on a port')
  const begin = (owner = 'one'): ClientRequest => {
    const call = request({ host: '127.0.0.1', port: address.port, method: 'POST', path: '/v2/a/blobs/uploads/', headers: { 'x-owner': owner } })
    call.on('error', () => undefined).once('response', (answer) => { statuses.push(answer.resume().statusCode ?? 0) }).end()
    return call
  }
  return { begin, statuses, held, dropped }
}

const began = (response: ServerResponse, id: string): void => { response.writeHead(202, { 'docker-upload-uuid': id }).end() }

t.test('uploads that one key begins at the same time are bounded, those of another begin, and what came of none no longer counts', async (t) => {
  const { begin, statuses, held } = await start(t)
  for (let count = 0; count < 260; count++) begin()
  await eventually('those above the bound are refused', () => statuses.length === 4, { limitMs: 20_000 })
  t.same(statuses, [429, 429, 429, 429])
  await eventually('as many as one may have at a time are asked', () => held.length === 128)
  begin('other')
  await eventually('that of the other is asked', () => held.length === 129)
  held.pop()?.writeHead(404).end()
  await eventually('it is answered', () => statuses.at(-1) === 404)
  held.shift()?.writeHead(404).end()
  await eventually('one has failed', () => statuses.length === 6)
  begin()
  begin()
  await eventually('one more of the two may begin', () => statuses.length === 7)
  t.equal(statuses.at(-1), 429)
})

t.test('an upload whose client left before the answer is removed, and counts no longer', async (t) => {
  const { begin, held, statuses, dropped } = await start(t)
  const call = begin()
  await eventually('the store is asked', () => held.length === 1)
  await new Promise<void>((resolve) => { call.destroy().once('close', resolve) })
  const later = begin()
  await eventually('the store is asked again', () => held.length === 2)
  for (const [index, response] of held.entries()) began(response, `upload-${index}`)
  await eventually('the second is answered', () => statuses.length === 1)
  await eventually('the first is removed', () => dropped.includes('upload-0'), { limitMs: 20_000 })
  t.notOk(dropped.includes('upload-1'))
  later.destroy()
})
