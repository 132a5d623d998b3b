// An address that is denied while requests to it are under way: those end in order, and nothing that begins later gets there, not even over their connections.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { setStage, type Stage } from './helpers/setup.ts'

const HOST = 'api.good.test'
const LAST = 100

interface Answer { readonly status: number, readonly text: Promise<string> }

interface Body { write (text: string): unknown, end (text: string): unknown }

interface Protocol {
  /** An origin that serves each path. */
  origin (stage: Stage, serve: (path: string, body: Body) => void): Promise<unknown>
  /** Resolves with the header of the answer. */
  ask (t: Test, stage: Stage, path: string): Promise<Answer>
}

async function textOf (body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString('latin1')
}

const HTTP1: Protocol = {
  origin: async (stage, serve) => await stage.origin(LAST, { streaming: (incoming, response) => serve(incoming.url ?? '', response) }),
  async ask (t, stage, path) {
    const socket = await openTls(stage.proxy, stage.guest, HOST)
    t.teardown(() => socket.destroy())
    const outgoing = request({ createConnection: () => socket, path, headers: { host: stage.host(HOST) }, setHost: false }).end()
    const [answer] = await once(outgoing, 'response')
    return { status: answer.statusCode, text: textOf(answer) }
  }
}

const HTTP2: Protocol = {
  origin: async (stage, serve) => await stage.origin(LAST, {
    http2: server => {
      server.on('stream', (stream, headers) => {
        stream.respond({ ':status': 200 })
        serve(String(headers[':path']), stream)
      })
    }
  }),
  async ask (t, stage, path) {
    const socket = await openTls(stage.proxy, stage.guest, HOST, { alpn: ['h2'] })
    const session = connect(`https://${HOST}`, { createConnection: () => socket })
    t.teardown(() => session.destroy())
    const stream = session.request({ ':authority': stage.host(HOST), ':path': path })
    const [headers] = await once(stream, 'response')
    return { status: Number(headers[':status']), text: textOf(stream) }
  }
}

for (const [name, protocol] of Object.entries({ 'HTTP/1.1': HTTP1, 'HTTP/2': HTTP2 })) {
  t.test(`over ${name} no request of a guest gets to an address that was denied, on none of the connections that others have there`, async (t) => {
    const stage = await setStage(t)
    const held: Body[] = []
    await protocol.origin(stage, (path, body) => {
      if (path === '/held') held.push(body)
      if (path === '/held') body.write('hello ')
      else body.end('hello')
    })
    const statusOfAnother = async (): Promise<number> => {
      const { status, text } = await protocol.ask(t, stage, '/')
      await text
      return status
    }
    const underWay = await protocol.ask(t, stage, '/held')
    t.equal(await statusOfAnother(), 200, 'before')
    const { status, body } = await stage.proxy.call('PATCH', '/policy', { base: JSON.parse((await stage.proxy.call('GET', '/policy')).body).revision, revision: 1000, denied: [`${loopback(LAST)}/32`], vms: [], gone: [] })
    t.equal(status, 200, body)
    t.equal(await statusOfAnother(), 403, 'beside a request that is under way')
    for (const each of held) each.end('to the end')
    t.equal(await underWay.text, 'hello to the end', 'which is not cut off')
    t.equal(await statusOfAnother(), 403, 'behind it')
  })
}
