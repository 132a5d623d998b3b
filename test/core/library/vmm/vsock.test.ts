// The way to a guest through a VMM that carries vsock over a unix socket.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connectGuest } from '../../../../core/library/vmm/vsock.ts'

async function vmm (t: Test, welcome: (socket: Socket, line: string) => void): Promise<string> {
  // A short one, as a socket's path is.
  const folder = await mkdtemp(join(tmpdir(), 'berth-vsock-'))
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (line: Buffer) => welcome(socket, line.toString()))
  })
  server.listen(join(folder, 'v'))
  await once(server, 'listening')
  t.teardown(async () => {
    server.close()
    await rm(folder, { recursive: true, force: true })
  })
  return folder
}

await t.test('trap, partial reads after CONNECT: the answer may come in pieces, and what stands behind it is the stream\'s first bytes', async (t) => {
  const folder = await vmm(t, (socket, line) => {
    t.equal(line, 'CONNECT 1024\n')
    socket.write('OK 10')
    setImmediate(() => socket.end('24\nfirst bytes'))
  })
  const stream = await connectGuest(folder, 'v', 1024, 5000)
  let said = ''
  stream.on('data', (chunk: Buffer) => { said += chunk.toString() })
  await once(stream, 'close')
  t.equal(said, 'first bytes')
})

await t.test('trap, a CONNECT that is dropped without a word: nobody listens, nobody answers, or the answer is nonsense: an error says which, and the connection is closed', async (t) => {
  const cases: ReadonlyArray<readonly [(socket: Socket) => void, RegExp]> = [
    [(socket) => socket.destroy(), /nobody listens/], [() => {}, /no answer within 100 ms/],
    [(socket) => { socket.write('NO\n') }, /something else/], [(socket) => { socket.write('O'.repeat(1000)) }, /has no end/]
  ]
  for (const [welcome, message] of cases) {
    const folder = await vmm(t, welcome)
    await t.rejects(connectGuest(folder, 'v', 1024, 100), { code: 'guest_unreachable', message })
  }
})

await t.test('where no socket is, or something else, the guest cannot be reached: it is no fault of the server\'s', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-vsock-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'file'), '')
  for (const name of ['none', 'file']) await t.rejects(connectGuest(folder, name, 1024, 100), { code: 'guest_unreachable', statusCode: 503 }, name)
})
