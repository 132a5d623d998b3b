// Which clients of a socket count as gone.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { MessageStream } from '../../../../plugins/instances/sockets/messages.ts'
import { until } from '../../../helpers/eventually.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** long beside the moments in which a busy host lets this process wait */
const PING_MS = 250
/** several rounds of pings */
const A_WHILE_MS = 6 * PING_MS

/** A server's side of a socket, and a client that answers no ping. */
async function pair (t: Test): Promise<{ readonly messages: MessageStream, readonly client: WebSocket, readonly socket: WebSocket }> {
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const connected = once(sockets, 'connection')
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong: false })
  client.on('error', () => {})
  const [socket] = await connected as [WebSocket]
  await once(client, 'open')
  t.teardown(async () => {
    client.terminate()
    socket.terminate()
    sockets.close()
    server.close()
    await once(server, 'close')
  })
  return { messages: new MessageStream(socket, PING_MS), client, socket }
}

t.test('a client that neither sends nor answers is gone', async (t) => {
  const { messages } = await pair(t)
  t.notOk(messages.closed.aborted)
  await until(() => messages.closed.aborted)
})

t.test('a client that sends and does not read meanwhile is there, and is gone once it stops sending', async (t) => {
  const { messages, client } = await pair(t)
  const sending = setInterval(() => { client.send('content') }, PING_MS / 5)
  t.teardown(() => { clearInterval(sending) })
  const end = performance.now() + A_WHILE_MS
  while (performance.now() < end) t.ok(await messages.next())
  t.notOk(messages.closed.aborted)
  clearInterval(sending)
  await until(() => messages.closed.aborted)
})

t.test('a client that does not read what it is sent is there as long as its connection is', async (t) => {
  const { messages, client } = await pair(t)
  client.pause()
  const sent = messages.sendBinary(Buffer.alloc(64 * 2 ** 20))
  await sleep(A_WHILE_MS)
  t.notOk(messages.closed.aborted)
  client.resume()
  await sent
  t.notOk(messages.closed.aborted)
})

t.test('a client that sends messages without content is held back by their number', async (t) => {
  const { messages, client, socket } = await pair(t)
  const count = 10_000
  for (let sent = 0; sent < count; sent++) client.send(Buffer.alloc(0))
  await until(() => socket.isPaused)
  for (let taken = 0; taken < count; taken++) if (await messages.next() === undefined) return t.fail('one is lost')
  t.notOk(socket.isPaused)
})

t.test('messages that wait keep no more memory than they have, though each came in a chunk of 64 KiB', async (t) => {
  const { messages, socket } = await pair(t)
  const held = async (): Promise<number> => {
    for (let round = 0; round < 3; round++) {
      collect()
      await sleep(20)
    }
    return process.memoryUsage().arrayBuffers
  }
  const before = await held()
  // As ws gives them: the rest of each chunk was for pings.
  for (let count = 0; count < 1000; count++) socket.emit('message', Buffer.alloc(65_536, 1).subarray(0, 10), true)
  t.ok(await held() - before < 4 * 2 ** 20)
  for (let count = 0; count < 1000; count++) t.equal((await messages.next())?.data.length, 10)
})
