// Asks for many names: arguments are the server, how many in a second, for how many seconds, from how many ports, and how each begins. Prints how many it has asked for, and how many answers came.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

const [server = '', perSecond = '', seconds = '', ports = '', prefix = ''] = process.argv.slice(2)
const sockets = Array.from({ length: Number(ports) }, () => createSocket('udp4').bind(0))
let answered = 0
for (const socket of sockets) socket.on('message', () => answered++)
await Promise.all(sockets.map(async (socket) => await once(socket, 'listening')))
const begin = Date.now()
const whole = Number(perSecond) * Number(seconds)
let asked = 0
while (asked < whole) {
  const due = Math.min(whole, Math.floor((Date.now() - begin) / 1000 * Number(perSecond)) + 1)
  for (; asked < due; asked++) sockets[asked % sockets.length]?.send(question(asked), 53, server)
  await delay(5)
}
// for the last answers
await delay(1000)
process.stdout.write(`${asked} ${answered}\n`)
process.exit(0)

function question (id: number): Buffer {
  const labels = [`${prefix}${process.pid}-${id}`, 'test'].flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  const header = Buffer.from('000001000001000000000000', 'hex')
  header.writeUInt16BE(id % 65_536)
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, 1, 0, 1])])
}
