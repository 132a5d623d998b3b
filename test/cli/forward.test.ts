// Local clients of `berth port-forward` that give up before the server has answered.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import { createServer } from 'node:http'
import t from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { clientEnvironment, mainFile } from './berth.ts'

t.test('a client that resets its connection while the server still thinks about it does not end the others', async (t) => {
  let asked = 0
  const server = createServer((_request, reply) => { reply.setHeader('content-type', 'application/json').end('{"name":"web"}') })
  // It never answers.
  server.on('upgrade', (_request, socket) => {
    asked++
    t.teardown(() => { socket.destroy() })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  const command = spawn(process.execPath, [mainFile, 'port-forward', 'web', ':80', '--json'], { env: { ...clientEnvironment(), BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(command, 'close')
  t.teardown(async () => {
    command.kill('SIGKILL')
    await ended
  })
  let said = ''
  command.stderr.on('data', (chunk) => { said += String(chunk) })
  const { port } = JSON.parse(String((await once(command.stdout, 'data'))[0])) as { readonly port: number }
  const first = connect(port, '127.0.0.1')
  await eventually('the server is asked for a connection', () => asked === 1)
  first.resetAndDestroy()
  await eventually('the next one is taken as well', () => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => { socket.destroy() })
    return asked > 1 || command.exitCode !== null
  })
  t.equal(command.exitCode, null, said)
  t.equal(said, '')
})
