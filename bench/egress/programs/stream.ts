// One body, down or up, over one connection. Says megabytes per second.
import { once } from 'node:events'
import { connect } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Way } from '../child.ts'
import { open } from './connection.ts'
import { given, say } from './given.ts'

const { way, size, upload, http2 } = given<{ readonly way: Way, readonly size: number, readonly upload: boolean, readonly http2: boolean }>()
const block = Buffer.alloc(1024 * 1024, 'y')
const windowBytes = 8 * 1024 * 1024

async function pour (target: Duplex): Promise<void> {
  for (let left = size; left > 0; left -= block.length) if (!target.write(block.subarray(0, Math.min(left, block.length)))) await once(target, 'drain')
}

async function overHttp1 (socket: TLSSocket): Promise<void> {
  let missing = -1
  const done = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the connection was closed with ${missing} bytes missing`)))
    socket.on('data', (chunk: Buffer) => {
      if (missing >= 0) missing -= chunk.length
      else {
        const end = chunk.indexOf('\r\n\r\n')
        const head = chunk.toString('latin1', 0, end)
        if (!head.startsWith('HTTP/1.1 200 ')) return reject(new Error(`unexpected answer: ${head}`))
        missing = Number(/^content-length: (\d+)$/im.exec(head)?.[1]) - (chunk.length - end - 4)
      }
      if (missing === 0) resolve()
    })
  })
  socket.write(`${upload ? 'PUT' : 'GET'} /bytes/${size} HTTP/1.1\r\nHost: ${way.host}\r\n${upload ? `Content-Length: ${size}\r\n` : ''}\r\n`)
  if (upload) await pour(socket)
  await done
}

async function overHttp2 (socket: TLSSocket): Promise<void> {
  const session = connect(`https://${way.host}`, { createConnection: () => socket, settings: { initialWindowSize: windowBytes } })
  session.setLocalWindowSize(windowBytes)
  const stream = session.request({ ':method': upload ? 'PUT' : 'GET', ':path': `/bytes/${size}`, ':authority': way.host }, { endStream: !upload })
  let received = 0
  stream.on('response', headers => { if (headers[':status'] !== 200) stream.destroy(new Error(`answered ${headers[':status']}`)) })
  stream.on('data', (chunk: Buffer) => { received += chunk.length })
  const done = once(stream, 'end')
  if (upload) {
    await pour(stream)
    stream.end()
  }
  await done
  if (!upload && received !== size) throw new Error(`${received} bytes came instead of ${size}`)
}

const socket = await open(way, http2 ? 'h2' : 'http/1.1')
const beganMs = performance.now()
await (http2 ? overHttp2(socket) : overHttp1(socket))
say({ megabytesPerSecond: size / 1e6 / ((performance.now() - beganMs) / 1000) })
process.exit(0)
