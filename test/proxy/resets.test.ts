// A guest that resets what it asked for: whatever the code says, nobody reads the answer any more, so its origin is not to go on sending it.
import t from 'tap'
import { once } from 'node:events'
import { connect, constants, type ClientHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { ServerResponse } from 'node:http'
import { eventually } from '../helpers/eventually.ts'
import { openTls } from './helpers/guest.ts'
import { setStage, type Stage } from './helpers/setup.ts'

const DOWNLOADS = 40
const LIMIT = 8
const CODES = [constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_CANCEL, constants.NGHTTP2_INTERNAL_ERROR]

async function open (stage: Stage, teardown: (end: () => void) => void): Promise<ClientHttp2Session> {
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test', { alpn: ['h2'] })
  const session = connect('https://api.good.test', { createConnection: () => socket })
  session.on('error', () => {})
  teardown(() => session.destroy())
  return session
}

/** Sends without end for as long as somebody takes it. */
function pour (response: ServerResponse | ServerHttp2Stream, running: Set<object>): void {
  running.add(response)
  response.on('error', () => {})
  response.on('close', () => { running.delete(response) })
  const more = (): void => {
    while (!response.destroyed && ('writeHead' in response ? response.write(Buffer.alloc(65_536)) : response.write(Buffer.alloc(65_536))));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

for (const way of ['HTTP/1.1', 'HTTP/2'] as const) {
  t.test(`downloads of an origin over ${way} that a guest resets end on the far side, too, and count no longer`, async (t) => {
    const stage = await setStage(t, { limits: { requests: LIMIT } })
    const running = new Set<object>()
    let begun = 0
    await stage.origin(100, way === 'HTTP/2'
      ? { http2: server => { server.on('stream', stream => { begun++; stream.respond({ ':status': 200 }); pour(stream, running) }) } }
      : { streaming: (request, response) => { begun++; request.resume(); response.writeHead(200); pour(response, running) } })
    const session = await open(stage, end => { t.teardown(end) })
    for (let count = 0; count < DOWNLOADS; count++) {
      const stream = session.request({ ':authority': stage.host('api.good.test'), ':path': `/${count}` })
      stream.on('error', () => {})
      const [{ ':status': status }] = await once(stream, 'response')
      t.equal(status, 200, `download ${count} is no more than the limit`)
      const closed = new Promise(resolve => { stream.once('close', resolve) })
      stream.close(CODES[count % CODES.length] ?? 0)
      await closed
      await eventually('the far side has ended', async () => running.size === 0)
    }
    t.equal(begun, DOWNLOADS)
    const entries = await stage.proxy.audited(`vm-${stage.guest}`, all => all.length >= DOWNLOADS)
    t.ok(entries.every(({ reason }) => reason === 'guest_closed'))
  })
}
