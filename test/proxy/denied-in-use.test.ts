// An address that is denied while requests to it are under way: these end, and nothing that begins later gets there, not even over their connections. Connections to other addresses stay.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { closesWithin, exchangeBytes, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import type { TestOrigin } from './helpers/origin.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage, type Stage } from './helpers/setup.ts'

const [DENIED, OTHER] = [{ host: 'denied.good.test', last: 100 }, { host: 'other.good.test', last: 101 }] as const
type Place = typeof DENIED | typeof OTHER

interface Answer { readonly status: number, readonly text: Promise<string> }

interface Body { write (text: string): unknown, end (text: string): unknown }

interface Protocol {
  /** An origin that serves each path. */
  origin (stage: Stage, place: Place, serve: (path: string, body: Body) => void): Promise<TestOrigin>
  /** Resolves with the header of the answer. */
  ask (t: Test, stage: Stage, place: Place, path: string): Promise<Answer>
}

async function textOf (body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

const HTTP1: Protocol = {
  origin: async (stage, { host, last }, serve) => await stage.origin(last, { hosts: [host], streaming: (incoming, response) => serve(incoming.url ?? '', response) }),
  async ask (t, stage, { host }, path) {
    const socket = await openTls(stage.proxy, stage.guest, host)
    t.teardown(() => socket.destroy())
    const outgoing = request({ createConnection: () => socket, path, headers: { host: stage.host(host) }, setHost: false }).end()
    const [answer] = await once(outgoing, 'response')
    return { status: answer.statusCode, text: textOf(answer) }
  }
}

const HTTP2: Protocol = {
  origin: async (stage, { host, last }, serve) => await stage.origin(last, {
    hosts: [host],
    http2: server => {
      server.on('stream', (stream, headers) => {
        stream.on('error', () => {})
        stream.respond({ ':status': 200 })
        serve(String(headers[':path']), stream)
      })
    }
  }),
  async ask (t, stage, { host }, path) {
    const socket = await openTls(stage.proxy, stage.guest, host, { alpn: ['h2'] })
    const session = connect(`https://${host}`, { createConnection: () => socket })
    session.on('error', () => {})
    t.teardown(() => session.destroy())
    const stream = session.request({ ':authority': stage.host(host), ':path': path })
    const [headers] = await once(stream, 'response')
    return { status: Number(headers[':status']), text: textOf(stream) }
  }
}

/** From then on no guest may reach it. */
async function deny (stage: Stage, { last }: Place): Promise<void> {
  const { revision } = JSON.parse((await stage.proxy.call('GET', '/policy')).body)
  const { status, body } = await stage.proxy.call('PATCH', '/policy', { base: revision, revision: revision + 1, denied: [`${loopback(last)}/32`], vms: [], gone: [] })
  if (status !== 200) throw new Error(body)
}

t.test('nothing of a guest gets to an address that was denied: what is under way ends, and no connection is left that others could use', async (t) => {
  for (const [name, protocol] of Object.entries({ 'HTTP/1.1': HTTP1, 'HTTP/2': HTTP2 })) {
    await t.test(`over ${name}`, async (t) => {
      const stage = await setStage(t)
      await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['*.good.test'] }]))
      const serve = (path: string, body: Body): void => {
        if (path === '/held') body.write('hello ')
        else body.end('hello')
      }
      const [origin, other] = [await protocol.origin(stage, DENIED, serve), await protocol.origin(stage, OTHER, serve)]
      const statusOf = async (place: Place): Promise<number> => {
        const { status, text } = await protocol.ask(t, stage, place, '/')
        await text
        return status
      }
      const [underWay, elsewhere] = [await protocol.ask(t, stage, DENIED, '/held'), await protocol.ask(t, stage, OTHER, '/held')]
      t.same([await statusOf(DENIED), await statusOf(OTHER)], [200, 200], 'before')
      const before = [origin.connections(), other.connections()]
      const ended = t.rejects(underWay.text, 'what is under way ends')
      await deny(stage, DENIED)
      await ended
      t.equal(await Promise.race([elsewhere.text, Promise.resolve('under way')]), 'under way', 'and nothing elsewhere')
      t.same([await statusOf(DENIED), await statusOf(OTHER)], [403, 200], 'afterwards')
      t.same([origin.connections(), other.connections()], before, 'no connection was made')
    })
  }
})

t.test('a WebSocket to an address that is denied ends', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: [DENIED.host] }]))
  await stage.origin(DENIED.last, { hosts: [DENIED.host], upgrade: (_request, socket) => { socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n') } })
  const socket = await openTls(stage.proxy, stage.guest, DENIED.host)
  const handshake = ['GET / HTTP/1.1', `Host: ${stage.host(DENIED.host)}`, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==', '', ''].join('\r\n')
  t.match(await exchangeBytes(socket, handshake, text => text.includes('\r\n\r\n')), /^HTTP\/1.1 101 /)
  await deny(stage, DENIED)
  t.ok(await closesWithin(socket, 10_000))
})
