// A WebSocket to an origin that reads nothing: what its guest sent fills the kernel's buffers, and some of it waits in the proxy, which still reads from the guest.
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { exchangeBytes, openPlain } from './guest.ts'
import { loopback } from './network.ts'
import { startRawOrigin, type RawOrigin } from './raw-origin.ts'
import type { Stage } from './setup.ts'

const HOST = 'deaf.good.test'
const PIECE = Buffer.alloc(64 * 1024)
/** pieces that wait in the proxy, which holds its guest back at 512 KiB */
const WAITING = 3

/** Starts the origin, a plain one. */
export async function startDeafOrigin (stage: Stage): Promise<RawOrigin> {
  stage.names.records.set(HOST, [loopback(100)])
  return await startRawOrigin({
    address: loopback(100), port: stage.plainPort, host: HOST,
    heard (socket) {
      socket.pause()
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    }
  })
}

/** Opens such a WebSocket to it. */
export async function openStuckTunnel (stage: Stage): Promise<Socket> {
  const socket = await openPlain(stage.proxy, stage.guest)
  const line = `GET / HTTP/1.1\r\nHost: ${HOST}:${stage.plainPort}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`
  await exchangeBytes(socket, line, text => text.includes('\r\n\r\n'))
  let waiting = 0
  for (let before = await queuedBytes(stage); waiting < WAITING;) {
    await new Promise(resolve => socket.write(PIECE, resolve))
    // The kernel takes more of it as its buffers grow, in its own time.
    await delay(30)
    const now = await queuedBytes(stage)
    waiting = now === before ? waiting + 1 : 0
    before = now
  }
  return socket
}

/** What the kernel holds of all connections to the plain origin, on both sides. */
async function queuedBytes ({ plainPort }: Stage): Promise<number> {
  const port = plainPort.toString(16).toUpperCase().padStart(4, '0')
  let bytes = 0
  for (const line of (await readFile('/proc/net/tcp', 'latin1')).split('\n')) {
    const [, local = '', remote = '', , queues = ''] = line.trim().split(/\s+/)
    const [sent = '0', received = '0'] = queues.split(':')
    if (remote.endsWith(`:${port}`)) bytes += Number.parseInt(sent, 16)
    if (local.endsWith(`:${port}`)) bytes += Number.parseInt(received, 16)
  }
  return bytes
}
