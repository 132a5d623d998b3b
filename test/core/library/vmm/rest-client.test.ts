// Questions to a VMM that a guest may control: each ends, whatever it answers.
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createRestClient, type RestClient } from '../../../../core/library/vmm/rest-client.ts'
import { listenUnix } from '../../../../core/process/unix-socket.ts'
import { testFolder } from '../../../helpers/folder.ts'

const SOCKET = 'api'
const HEAD = 'HTTP/1.1 200 OK\r\n'

/** @param answer writes to the connection of a request that has come */
async function clientOf (t: Test, answer: (socket: Socket) => void, timeoutMs: number): Promise<RestClient> {
  const folder = testFolder(t, {})
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', () => answer(socket))
  })
  await listenUnix(server, folder, SOCKET)
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return createRestClient({ name: 'the VMM', folder, socket: SOCKET, timeoutMs })
}

const writing = (text: string) => (socket: Socket): void => { socket.write(text) }

await t.test('a question to a VMM ends with an error when the answer is none, and does not wait for its time', async (t) => {
  const answers = {
    'a change of the protocol': writing('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'),
    'no HTTP': writing('hello\r\n\r\n'),
    'endless headers': writing(`${HEAD}${'a: b\r\n'.repeat(100_000)}`),
    'half an answer': (socket: Socket): void => { socket.end(`${HEAD}content-length: 10\r\n\r\n{`) },
    'no answer': (socket: Socket): void => { socket.end() },
    'more than any answer has': writing(`${HEAD}\r\n${' '.repeat(2 ** 21)}`)
  }
  for (const [name, answer] of Object.entries(answers)) await t.test(name, async (t) => await t.rejects((await clientOf(t, answer, 60_000)).ask('GET', '/'), { code: 'vmm_unreachable' }))
})

await t.test('one whose answer never ends has its time', async (t) => {
  const trickle = (socket: Socket): void => {
    socket.write(`${HEAD}\r\n`)
    const timer = setInterval(() => socket.write(' '), 10)
    socket.once('close', () => clearInterval(timer))
  }
  const answers = { 'byte by byte': trickle, 'only a promise': writing('HTTP/1.1 100 Continue\r\n\r\n'), silence: () => {} }
  for (const [name, answer] of Object.entries(answers)) await t.test(name, async (t) => await t.rejects((await clientOf(t, answer, 200)).ask('GET', '/'), { code: 'vmm_silent' }))
})
