// First contacts: a new connection to a name that was never asked for, until the answer arrives. Reports the median over the names in milliseconds.
import { once } from 'node:events'
import { quantile } from '../../harness.ts'
import type { Way } from '../child.ts'
import { open } from './connection.ts'
import { given, say } from './given.ts'

const { way, names, port } = given<{ readonly way: Way, readonly names: readonly string[], readonly port: number }>()
const times: number[] = []
for (const name of names) {
  const beganMs = performance.now()
  const socket = await open(way, 'http/1.1', name)
  socket.write(`GET / HTTP/1.1\r\nHost: ${name}:${port}\r\nConnection: close\r\n\r\n`)
  const [answer]: Buffer[] = await once(socket, 'data')
  times.push(performance.now() - beganMs)
  if (answer?.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ') throw new Error(`unexpected answer: ${answer?.toString('latin1')}`)
  socket.destroy()
}
// The first connection of this program is slow by itself, so it is not counted.
say({ medianMs: quantile(times.slice(Math.ceil(names.length / 5)).sort((a, b) => a - b), 0.5) })
process.exit(0)
