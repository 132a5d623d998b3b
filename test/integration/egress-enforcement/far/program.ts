// Origins, a name server and a stranger in one process, which lives in a network namespace of its own and obeys the test that started it.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecure } from 'node:https'
import { createServer as createTcp } from 'node:net'
import { TLSSocket } from 'node:tls'
import { createTestAuthority, type TestAuthority } from '../../../proxy/helpers/authority.ts'
import { startNames, type TestNames } from '../../../proxy/helpers/names.ts'
import { startNameServer } from './name-server.ts'
import { API, GREETING, NAME_SERVER, OTHER, STRANGER, STRANGER_TCP, STRANGER_UDP, type Order, type Seen } from './contract.ts'

const STREAM_INTERVAL_MS = 100

const seen: Seen[] = []
const streams = new Set<string>()
let names: TestNames | undefined

process.on('message', (message: { readonly id: number, readonly order: Order }) => {
  void obey(message.order).then(
    (answer) => process.send?.({ id: message.id, answer }),
    (error: unknown) => process.send?.({ id: message.id, error: error instanceof Error ? error.stack : String(error) })
  )
})
// The test has ended.
process.on('disconnect', () => process.exit(0))

async function obey (order: Order): Promise<unknown> {
  if (order.do === 'start') return await start()
  if (order.do === 'asked') return names?.asked ?? []
  if (order.do === 'streams') return [...streams]
  return seen
}

async function start (): Promise<{ authority: string }> {
  const authority = createTestAuthority()
  names = await startNames(NAME_SERVER)
  for (const { host, address } of [API, OTHER]) {
    names.records.set(host, [address])
    await startOrigin(host, address, authority)
  }
  await startNameServer(NAME_SERVER, names)
  for (const port of STRANGER_TCP) {
    const server = createTcp((socket) => {
      socket.on('error', () => socket.destroy())
      socket.write(`${GREETING} ${socket.remoteAddress ?? ''}\n`)
    }).listen(port, STRANGER)
    await once(server, 'listening')
  }
  for (const port of STRANGER_UDP) {
    const socket = createSocket('udp4')
    socket.on('message', (_text, from) => socket.send(`${GREETING} ${from.address}\n`, from.port, from.address))
    socket.bind(port, STRANGER)
    await once(socket, 'listening')
  }
  return { authority: authority.certificatePem }
}

async function startOrigin (host: string, address: string, authority: TestAuthority): Promise<void> {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket, url = '', headers } = request
    const secure = socket instanceof TLSSocket
    seen.push({ host, secure, url, authorization: headers.authorization, traceparent: headers['traceparent'] === undefined ? undefined : String(headers['traceparent']), port: socket.remotePort ?? 0, resumed: secure && socket.isSessionReused() })
    if (url.startsWith('/stream')) stream(url, response)
    else response.end(`hello from ${host}`)
  }
  const { cert, key } = authority.issue(host)
  for (const [server, port] of [[createPlain(answer), 80], [createSecure({ cert, key }, answer), 443]] as const) await once(server.listen(port, address), 'listening')
}

/** A body without an end. */
function stream (url: string, response: ServerResponse): void {
  streams.add(url)
  const timer = setInterval(() => response.write('more\n'), STREAM_INTERVAL_MS)
  response.on('close', () => {
    clearInterval(timer)
    streams.delete(url)
  })
  response.on('error', () => {})
  response.write('first\n')
}
