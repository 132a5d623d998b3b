// A program in place of a VMM: `slow-to-end.js SOCKET qmp|rest MS` says that its VM runs. At SIGUSR1 it closes its sockets, and it ends so many milliseconds later, as a VMM does whose memory is large.
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'

const [, , path = '', protocol = '', ms = ''] = process.argv

const GREETING = { QMP: { version: { qemu: { micro: 0, minor: 0, major: 10 }, package: '' }, capabilities: [] } }

function qmp (socket: Socket): void {
  const say = (message: object): void => { socket.write(`${JSON.stringify(message)}\r\n`) }
  say(GREETING)
  socket.on('data', (chunk: Buffer) => {
    for (const line of chunk.toString().trim().split('\n')) {
      const { execute, id }: { readonly execute: string, readonly id: unknown } = JSON.parse(line)
      say({ id, return: execute === 'query-status' ? { status: 'running', running: true } : {} })
    }
  })
}

const server: Server = protocol === 'qmp'
  ? createServer(qmp)
  : createHttpServer((_request, response) => { response.end(JSON.stringify({ state: 'Running', config: {} })) })
const sockets = new Set<Socket>()
server.on('connection', (socket: Socket) => {
  sockets.add(socket)
  socket.on('error', () => {}).on('close', () => sockets.delete(socket))
})
server.listen(path)
process.on('SIGUSR1', () => {
  server.close()
  for (const socket of sockets) socket.destroy()
  setTimeout(() => process.exit(), Number(ms))
})
