// The load generator: several keep-alive connections for a fixed time, each with one request at a time.
// It frames answers by Content-Length on bare sockets, since a full HTTP client would cost more than the server it measures.
// Run as a process of its own: `node load.js HOST PORT PATH CONNECTIONS SECONDS`, with the key in BENCH_KEY, in BENCH_HOST the host header if it is not HOST,
// and BENCH_AWAKE set where it has a processor to itself; prints requests per second.
import { connect, type Socket } from 'node:net'

interface Counter { requests: number, bytes: number }

const headerEnd = Buffer.from('\r\n\r\n')

/** Sends requests on one connection after the other, each until the server announces that it closes it, as nginx does after a thousand, or until the socket is destroyed. */
function drive (open: () => Socket, request: string, counter: Counter, fail: (error: Error) => void): void {
  const socket = open()
  let closes = false
  let pending: Buffer[] = []
  let missing = -1
  const next = (): void => { socket.write(request) }
  const finish = (): void => {
    counter.requests++
    pending = []
    missing = -1
    if (!closes) return next()
    socket.destroy()
    drive(open, request, counter, fail)
  }
  socket.on('data', (chunk: Buffer) => {
    counter.bytes += chunk.length
    if (missing >= 0) {
      missing -= chunk.length
      if (missing === 0) finish()
      return
    }
    pending.push(chunk)
    const head = Buffer.concat(pending)
    const end = head.indexOf(headerEnd)
    if (end < 0) return
    const text = head.subarray(0, end).toString('latin1')
    const length = /^content-length: (\d+)$/im.exec(text)?.[1]
    if (!text.startsWith('HTTP/1.1 200 ') || length === undefined) return fail(new Error(`unexpected answer: ${text}`))
    closes = /^connection: close$/im.test(text)
    missing = Number(length) - (head.length - end - headerEnd.length)
    if (missing === 0) finish()
  })
  socket.on('connect', next)
  socket.on('error', fail)
}

/** Lets the event loop ask for what has come again and again, and never wait for it. */
function stayAwake (): void {
  setImmediate(stayAwake)
}

async function load (host: string, port: number, path: string, connections: number, seconds: number): Promise<number> {
  const key = process.env['BENCH_KEY']
  const request = `GET ${path} HTTP/1.1\r\nHost: ${process.env['BENCH_HOST'] ?? `${host}:${port}`}\r\n${key === undefined ? '' : `Authorization: Bearer ${key}\r\n`}Accept: application/json\r\n\r\n`
  const counter = { requests: 0, bytes: 0 }
  const sockets = new Set<Socket>()
  const open = (): Socket => {
    const socket = connect({ host, port, noDelay: true })
    sockets.add(socket)
    socket.once('close', () => { sockets.delete(socket) })
    return socket
  }
  const started = process.hrtime.bigint()
  await new Promise<void>((resolve, reject) => {
    for (let count = 0; count < connections; count++) drive(open, request, counter, reject)
    setTimeout(resolve, seconds * 1000)
  })
  const elapsed = Number(process.hrtime.bigint() - started) / 1e9
  for (const socket of sockets) socket.destroy()
  return counter.requests / elapsed
}

// A server that wakes a sleeping process on another processor pays for it, in a VM up to a tenth of a request; and the slower the server, the more often the load generator sleeps, so that each difference between two servers would be shown too large.
if (process.env['BENCH_AWAKE'] !== undefined) stayAwake()
const [host, port, path, connections, seconds] = process.argv.slice(2)
if (host === undefined || path === undefined) throw new Error('usage: load.js HOST PORT PATH CONNECTIONS SECONDS')
process.stdout.write(`${await load(host, Number(port), path, Number(connections), Number(seconds))}\n`, () => { process.exit() })
