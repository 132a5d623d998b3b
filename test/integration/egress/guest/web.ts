// Runs in a guest: Node's own clients, with HTTP/1.1 over one connection, with HTTP/2 over one session, and fetch. Prints what came of it as JSON.
import { once } from 'node:events'
import { connect } from 'node:http2'
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'

const [origin = '', mock = ''] = process.argv.slice(2)
const authorization = `Bearer ${mock}`
const body = Buffer.alloc(300_000, 'words ')

async function withFetch (): Promise<unknown> {
  const answer = await fetch(`${origin}/echo/fetch?a=1&a=2`, { method: 'PUT', headers: { authorization }, body })
  const compressed = await fetch(`${origin}/compressed`)
  return { status: answer.status, cookies: answer.headers.getSetCookie(), echo: await answer.json(), expanded: (await compressed.text()).length }
}

async function withKeepAlive (): Promise<unknown> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ports = new Set<unknown>()
  const answers = []
  for (let round = 0; round < 3; round++) {
    const outgoing = request(origin, { agent, path: `/echo/keep//alive/../${round}`, method: 'POST', headers: { authorization, 'x-Mixed-CASE': 'kept' } })
    // in chunks, since no length is given
    outgoing.write('one ')
    outgoing.end('two')
    const [answer] = await once(outgoing, 'response') as [IncomingMessage]
    ports.add(answer.socket.localPort)
    answers.push(JSON.parse(await textOf(answer)) as unknown)
  }
  agent.destroy()
  return { connections: ports.size, answers }
}

async function withHttp2 (): Promise<unknown> {
  const session = connect(origin)
  session.on('error', () => {})
  const answers = await Promise.all([1, 2, 3, 4, 5].map(async (round) => {
    const stream = session.request({ ':path': `/echo/${round}`, ':method': 'POST', authorization })
    stream.end(body.subarray(0, round * 50_000))
    const [headers] = await once(stream, 'response') as [Record<string, unknown>]
    const parts: Buffer[] = []
    for await (const part of stream) parts.push(part as Buffer)
    return { status: headers[':status'], echo: JSON.parse(Buffer.concat(parts).toString()) as unknown }
  }))
  session.close()
  return answers
}

async function textOf (answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of answer) text += String(part)
  return text
}

console.log(JSON.stringify({ fetch: await withFetch(), keepAlive: await withKeepAlive(), http2: await withHttp2() }))
