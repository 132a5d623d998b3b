// The load generator: keep-alive connections with one small request at a time on each. It frames answers on bare TLS connections by their length, since
// a full HTTP client would cost more than what it measures. Reports requests per second, the median latency and the 99th percentile.
import type { TLSSocket } from 'node:tls'
import { quantile } from '../../harness.ts'
import type { Way } from '../child.ts'
import { open } from './connection.ts'
import { given, say } from './given.ts'

const { way, connections, seconds, warmSeconds } = given<{ readonly way: Way, readonly connections: number, readonly seconds: number, readonly warmSeconds: number }>()
const bytes = Buffer.from(`GET /v1/things?id=1 HTTP/1.1\r\nHost: ${way.host}\r\nAccept: */*\r\nUser-Agent: bench\r\nAuthorization: Bearer mock\r\n\r\n`)
const STATUS = 'HTTP/1.1 200 '
const headerEnd = Buffer.from('\r\n\r\n')

/** Sends requests on one connection, each as soon as the last is answered, until the time is over. Adds the time of each request that began after `warmMs`. */
function drive (socket: TLSSocket, warmMs: number, untilMs: number, times: number[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let beganMs = 0
    let got: Buffer | undefined
    let missing = -1
    /** bytes of the last complete answer */
    let usual = 0
    const ask = (nowMs: number): void => {
      beganMs = nowMs
      got = undefined
      missing = -1
      socket.write(bytes)
    }
    const answered = (): void => {
      const nowMs = performance.now()
      if (beganMs > warmMs && nowMs <= untilMs) times.push(nowMs - beganMs)
      if (nowMs < untilMs) ask(nowMs)
      else resolve()
    }
    socket.on('data', (chunk: Buffer) => {
      if (missing >= 0) {
        missing -= chunk.length
      } else if (got === undefined && chunk.length === usual && isGood(chunk)) {
        // Parsing the length of every answer would cost more than everything else here.
        missing = 0
      } else {
        got = got === undefined ? chunk : Buffer.concat([got, chunk])
        const end = got.indexOf(headerEnd)
        if (end < 0) return
        const head = got.toString('latin1', 0, end)
        const length = /^content-length: (\d+)$/im.exec(head)?.[1]
        if (!isGood(got) || length === undefined) return reject(new Error(`unexpected answer: ${head}`))
        missing = Number(length) - (got.length - end - headerEnd.length)
        if (missing === 0) usual = got.length
      }
      if (missing === 0) answered()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
    ask(performance.now())
  })
}

function isGood (answer: Buffer): boolean {
  return answer.toString('latin1', 0, STATUS.length) === STATUS
}

const sockets: TLSSocket[] = []
for (let count = 0; count < connections; count++) sockets.push(await open(way, 'http/1.1'))
const warmMs = performance.now() + warmSeconds * 1000
const untilMs = warmMs + seconds * 1000
const times: number[] = []
await Promise.all(sockets.map(async socket => await drive(socket, warmMs, untilMs, times)))
times.sort((a, b) => a - b)
say({ perSecond: times.length / seconds, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) })
process.exit(0)
