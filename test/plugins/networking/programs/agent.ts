// A program that lives in a namespace and does with sockets what it is told, one JSON object per line.
import { createSocket } from 'node:dgram'
import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Resolver } from 'node:dns/promises'

/** for answers that come; who expects silence says how long it is listened to */
const CALL_TIMEOUT_MS = 15_000

/** `answer` is what a listener sends, to each that connects or to each datagram. */
export type Order =
  | { readonly do: 'listen', readonly protocol: 'tcp' | 'udp', readonly port: number, readonly answer: string, readonly host?: string }
  | { readonly do: 'call', readonly protocol: 'tcp' | 'udp', readonly host: string, readonly port: number, readonly timeoutMs?: number, readonly keep?: string }
  | { readonly do: 'say', readonly kept: string }
  | { readonly do: 'heard', readonly until?: string }
  | { readonly do: 'resolve', readonly server: string, readonly name: string, readonly timeoutMs?: number }

const kept = new Map<string, Socket>()
/** each datagram that came: its sender and its text */
const heard: string[] = []
const hearing = new EventEmitter()

async function obey (order: Order): Promise<string> {
  if (order.do === 'listen') return await (order.protocol === 'tcp' ? listenTcp(order) : listenUdp(order))
  if (order.do === 'call') return await (order.protocol === 'tcp' ? callTcp(order) : callUdp(order))
  if (order.do === 'say') return await say(order.kept)
  if (order.do === 'heard') return await listen(order.until)
  const resolver = new Resolver({ timeout: order.timeoutMs ?? CALL_TIMEOUT_MS, tries: 1 })
  resolver.setServers([order.server])
  return (await resolver.resolve4(order.name)).join()
}

// Greets each caller with the answer and the caller's address, and echoes what it says.
async function listenTcp ({ port, answer, host }: Extract<Order, { do: 'listen' }>): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.write(`${answer} ${socket.remoteAddress ?? ''}\n`)
    socket.on('data', (text) => socket.write(text))
  }).listen(port, host ?? '0.0.0.0')
  await once(server, 'listening')
  return 'listening'
}

async function listenUdp ({ port, answer, host }: Extract<Order, { do: 'listen' }>): Promise<string> {
  const socket = createSocket('udp4')
  socket.on('message', (text, from) => {
    heard.push(`${from.address} ${text.toString()}`)
    hearing.emit('word')
    socket.send(`${answer} ${from.address}\n`, from.port, from.address)
  })
  socket.bind(port, host ?? '0.0.0.0')
  await once(socket, 'listening')
  return 'listening'
}

/** All datagrams up to now, or up to the one with this text. */
async function listen (until: string | undefined): Promise<string> {
  const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
  const isMissing = (): boolean => until !== undefined && !heard.some((words) => words.endsWith(` ${until}`))
  while (isMissing()) await once(hearing, 'word', { signal })
  return heard.join('\n')
}

async function callTcp ({ host, port, keep, timeoutMs }: Extract<Order, { do: 'call' }>): Promise<string> {
  const socket = connect(port, host)
  try {
    return await firstWords(socket, timeoutMs)
  } finally {
    if (keep === undefined) socket.destroy()
    else {
      socket.on('error', () => {})
      kept.set(keep, socket)
    }
  }
}

async function say (name: string): Promise<string> {
  const socket = kept.get(name)
  if (socket === undefined || socket.destroyed) return 'closed'
  const words = firstWords(socket)
  socket.write('echo\n')
  return await words
}

function firstWords (socket: Socket, timeoutMs = CALL_TIMEOUT_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, timeoutMs, 'silence')
    socket.once('data', (text) => { clearTimeout(timer); resolve(text.toString().trim()) })
    socket.once('error', (error) => { clearTimeout(timer); reject(error) })
    socket.once('close', () => { clearTimeout(timer); resolve('closed') })
  })
}

async function callUdp ({ host, port, timeoutMs }: Extract<Order, { do: 'call' }>): Promise<string> {
  const socket = createSocket('udp4')
  socket.connect(port, host)
  await once(socket, 'connect')
  socket.send('question')
  try {
    return await new Promise((resolve, reject) => {
      setTimeout(resolve, timeoutMs ?? CALL_TIMEOUT_MS, 'silence').unref()
      socket.once('message', (text) => resolve(text.toString().trim()))
      socket.once('error', reject)
    })
  } finally {
    socket.close()
  }
}

function isOrder (value: unknown): value is Order {
  return typeof value === 'object' && value !== null && 'do' in value
}

// One after the other, so that answers come in the order of the questions.
for await (const line of createInterface({ input: process.stdin })) {
  const order: unknown = JSON.parse(line)
  if (!isOrder(order)) throw new Error(`no order: ${line}`)
  const result = await obey(order).catch((error: unknown) => error instanceof Error && 'code' in error ? String(error.code) : String(error))
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
process.exit(0)
