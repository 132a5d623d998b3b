// The thread that posts batches to the collector.
import t from 'tap'
import { createPostingThread, type PostingThread } from '../../../plugins/tracing/otlp/posting.ts'
import { SpanBatch } from '../../../plugins/tracing/otlp/span-batch.ts'
import { startCollector } from '../../helpers/otlp.ts'
import { startPeer } from './peer.ts'

const source = { resource: { 'service.name': 'berth' }, scope: { name: 'berth', version: '1' } }

async function postOne (thread: PostingThread, requestId: string): Promise<string | undefined> {
  const batch = new SpanBatch()
  batch.addSingle({ name: 'GET /', kind: 'server', attributes: {}, key: 'berth.request_id' }, { startMs: 1, endMs: 2, parent: undefined, value: requestId })
  return await new Promise((resolve) => { thread.post(batch.seal(), resolve) })
}

t.test('a thread that has ended begins again with the next batch', async (t) => {
  const collector = await startCollector(t)
  const thread = createPostingThread({ source, endpoint: collector.endpoint, headers: {}, timeoutMs: 5000 })
  t.teardown(async () => { await thread.close() })
  t.equal(await postOne(thread, 'one'), undefined)
  await thread.close()
  t.equal(await postOne(thread, 'two'), undefined)
  t.same(collector.spans().map(({ attributes }) => attributes['berth.request_id']), ['one', 'two'])
})

t.test('a batch whose thread ends before the collector has answered is told as lost', async (t) => {
  let seen: () => void = () => {}
  const asked = new Promise<void>((resolve) => { seen = resolve })
  const endpoint = await startPeer(t, (socket) => { socket.once('data', seen) })
  const thread = createPostingThread({ source, endpoint, headers: {}, timeoutMs: 60_000 })
  const posted = postOne(thread, 'one')
  await asked
  await thread.close()
  t.equal(await posted, 'the thread that posts has ended')
})

t.test('a batch whose answer comes drop by drop without an end is told as lost, and the next one is posted', async (t) => {
  let connections = 0
  const endpoint = await startPeer(t, (socket) => {
    const isFirst = ++connections === 1
    socket.once('data', () => {
      if (!isFirst) return socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const timer = setInterval(() => { socket.write('1\r\nx\r\n') }, 50)
      socket.once('close', () => { clearInterval(timer) })
    })
  })
  const thread = createPostingThread({ source, endpoint, headers: {}, timeoutMs: 200 })
  t.teardown(async () => { await thread.close() })
  const limit = new Promise<string>((resolve) => { setTimeout(resolve, 20_000, 'nothing was told').unref() })
  t.equal(await Promise.race([postOne(thread, 'one'), limit]), 'its answer does not end')
  t.equal(await Promise.race([postOne(thread, 'two'), limit]), undefined)
})
