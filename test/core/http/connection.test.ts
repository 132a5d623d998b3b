// What the server remembers of a connection never stands for what a later request on it says.
import { connect } from 'node:net'
import t from 'tap'
import { deferred } from '../../../core/jobs/deferred.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startTestHttp } from '../../helpers/http.ts'

/** Sends requests one after the other on one connection; returns the status line's number of each answer. */
async function statusesOf (origin: string, requests: readonly string[]): Promise<string[]> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  let answers = ''
  socket.setEncoding('utf8').on('data', (text: string) => { answers += text })
  for (const [index, request] of requests.entries()) {
    socket.write(`${request}\r\nhost: x\r\n\r\n`)
    await eventually('an answer', () => answers.split('HTTP/1.1 ').length === index + 2, { limitMs: 20_000, explain: () => answers })
  }
  socket.destroy()
  return [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => String(status))
}

t.test('each request of a connection is judged by the key that it presents itself', async (t) => {
  const { keys, listen } = await startTestHttp(t, (app) => { app.get('/thing', { config: { scope: 'instance:write' } }, () => 'here') })
  const reader = await keys.create({ name: 'reader', scopes: ['instance:read'] })
  const writer = await keys.create({ name: 'writer', scopes: ['instance:write'] })
  const get = (header?: string): string => `GET /thing HTTP/1.1${header === undefined ? '' : `\r\nauthorization: ${header}`}`
  t.same(await statusesOf(await listen(), [
    get(`Bearer ${writer.key}`), get(`Bearer ${writer.key}`), get(`Bearer ${reader.key}`), get(), get('Basic dTpw'), get('Basic dTpw'), get('Bearer nonsense'), get(`Bearer ${writer.key}`)
  ]), ['200', '200', '403', '401', '401', '401', '401', '200'])
})

t.test('a key that is revoked ends on a connection that has presented it, too', async (t) => {
  const { keys, listen } = await startTestHttp(t, (app) => {
    app.get('/thing', { config: { scope: 'instance:write' } }, () => 'here')
    app.get('/end', { config: { scope: null } }, async () => { await keys.revoke(writer.record.id) })
  })
  const writer = await keys.create({ name: 'writer', scopes: ['instance:write'] })
  const get = `GET /thing HTTP/1.1\r\nauthorization: Bearer ${writer.key}`
  t.same(await statusesOf(await listen(), [get, get, 'GET /end HTTP/1.1', get]), ['200', '200', '200', '401'])
})

t.test('an Upgrade that Connection does not name was not meant for this server, and is ignored', async (t) => {
  const { listen } = await startTestHttp(t, (app) => {
    app.get('/thing', { config: { scope: null } }, () => 'here')
    app.get('/echo', { websocket: true, config: { scope: null } }, () => undefined)
  })
  t.same(await statusesOf(await listen(), ['GET /thing HTTP/1.1\r\nupgrade: websocket', 'GET /echo HTTP/1.1\r\nupgrade: websocket', 'GET /thing HTTP/1.1']), ['200', '400', '200'])
})

t.test('a connection that closes while its key is looked up leaves nothing that waits for the end of that key', async (t) => {
  const { app, keys, key, listen } = await startTestHttp(t, (app) => { app.get('/stream', { config: { scope: 'instance:read', produces: 'text/event-stream' } }, () => 'here') })
  const { verifyHash, whenEnded } = keys
  const [looking, found] = [deferred(), deferred()]
  let [waited, released] = [0, 0]
  Object.assign(keys, {
    async verifyHash (hash: string) {
      looking.resolve()
      await found.promise
      return await verifyHash(hash)
    },
    whenEnded (...given: Parameters<typeof whenEnded>) {
      const release = whenEnded(...given)
      waited++
      return () => {
        released++
        release()
      }
    }
  })
  const client = connect(Number(new URL(await listen()).port), '127.0.0.1')
  client.write(`GET /stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`)
  await looking.promise
  client.destroy()
  await eventually('the end of the connection', async () => await new Promise<boolean>((resolve) => { app.server.getConnections((_error, count) => { resolve(count === 0) }) }))
  found.resolve()
  await eventually('the admission', () => waited === 1)
  t.equal(released, 1)
})
