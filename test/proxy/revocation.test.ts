import t from 'tap'
import { once } from 'node:events'
import { connect, constants, type ClientHttp2Session } from 'node:http2'
import { closesWithin, exchangeBytes, openTls } from './helpers/guest.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { eventually } from '../helpers/eventually.ts'
import { openFilesOf } from '../helpers/open-files.ts'
import { loopback } from './helpers/network.ts'
import { setStage, type Stage } from './helpers/setup.ts'
import { openStuckTunnel, startDeafOrigin } from './helpers/stuck-tunnel.ts'
import { workerOf } from './helpers/workers.ts'

const HOST = 'api.good.test'

// More than all buffers on the way hold.
const UPLOAD_BYTES = 64 * 1024 * 1024

async function answersPing (session: ClientHttp2Session): Promise<void> {
  await new Promise<void>((resolve, reject) => { session.ping(error => { if (error === null) resolve(); else reject(error) }) })
}

/** An upload over HTTP/2 that stands still because its origin reads nothing, and is reset then with NO_ERROR: the stream is closed for Node, but not destroyed. */
async function abandonedUpload (stage: Stage, from: string): Promise<ClientHttp2Session> {
  const socket = await openTls(stage.proxy, from, HOST, { alpn: ['h2'] })
  const session = connect(`https://${HOST}`, { createConnection: () => socket })
  session.on('error', () => {})
  const stream = session.request({ ':method': 'POST', ':authority': stage.host(HOST), ':path': '/held' })
  stream.on('error', () => {})
  stream.write(Buffer.alloc(UPLOAD_BYTES))
  for (let still = 0, sent = -1; still < 50; still++) {
    await answersPing(session)
    if (socket.bytesWritten - sent > 1_000) still = 0
    sent = socket.bytesWritten
  }
  stream.close(constants.NGHTTP2_NO_ERROR)
  // The answer to a PING comes after the reset was read.
  await answersPing(session)
  return session
}

t.test('a revision that removes VMs is in force for all of them when it is acknowledged, whatever state their requests are in', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {
    streaming: (request, response) => { if (request.url !== '/held') response.end('hello from the origin') }
  })
  const guests = [10, 11, 12].map(last => loopback(last))
  await stage.proxy.policy(...guests.map(guest => vmPolicy(guest, [{}])))
  const sessions: ClientHttp2Session[] = []
  for (const guest of guests) sessions.push(await abandonedUpload(stage, guest))
  t.teardown(() => { for (const session of sessions) session.destroy() })
  const kept = await Promise.all(guests.map(async guest => await openTls(stage.proxy, guest, HOST)))
  const line = `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\n\r\n`
  for (const socket of kept) t.match(await exchangeBytes(socket, line, text => text.includes('origin')), /^HTTP\/1.1 200 /)
  const closed = sessions.map(async session => { if (!session.closed) await once(session, 'close') })
  await stage.proxy.policy()
  for (const socket of kept) t.ok(await closesWithin(socket, 10_000), 'no connection of a removed VM is left')
  await Promise.all(closed)
  t.equal((await stage.proxy.call('GET', '/health')).status, 200)
})

t.test('a revision that removes a VM is acknowledged when its connections to origins have ended, too, also those that wait for an origin to read', async (t) => {
  const stage = await setStage(t)
  const origin = await startDeafOrigin(stage)
  t.teardown(() => origin.close())
  const { pid } = await workerOf(stage.proxy, stage.guest)
  const count = async () => await openFilesOf(pid)
  const before = await count()
  const socket = await openStuckTunnel(stage)
  socket.resetAndDestroy()
  await eventually('the guest is gone', async () => await count() <= before + 1)
  await stage.proxy.policy()
  t.equal(await count(), before)
})
