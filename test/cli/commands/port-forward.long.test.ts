// A port of this host that leads into a VM, and an agent's answer where nobody listens.
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { busyboxImage, push } from '../../helpers/images.ts'
import { startTestServer } from '../../helpers/server.ts'
import { mappingOf } from '../../../cli/forward/mapping.ts'
import { berth, clientEnvironment, mainFile } from '../berth.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const env = { BERTH_URL: server.url, BERTH_TOKEN: server.key }

t.test('ports are read as they are written', async (t) => {
  t.strictSame(mappingOf('8080:80'), { address: '127.0.0.1', local: 8080, remote: 80 })
  t.strictSame(mappingOf(':80'), { address: '127.0.0.1', local: 0, remote: 80 })
  t.strictSame(mappingOf('80'), { address: '127.0.0.1', local: 80, remote: 80 })
  t.strictSame(mappingOf('[::1]:81:80'), { address: '::1', local: 81, remote: 80 })
  for (const text of ['', 'a:80', '80:', '1:0', '1:65536', ':1:2']) t.throws(() => mappingOf(text), /is not \[ADDRESS:\]LOCAL:REMOTE/, text)
})

t.test('bytes pass both ways with the end of each side, and nobody there is a reset and one line', async (t) => {
  // Two programs of busybox: one prints what it is sent, the other a page.
  const program = 'mkdir /www; echo hello from the vm > /www/index.html; httpd -h /www -p 8000; exec nc -ll -p 9000 -e sha256sum'
  t.match(await berth(['run', '-d', '--name', 'web', '--no-network', '--size', '128MB', '--vcpus', '1', image, 'sh', '-c', program], { env }), { code: 0 })
  t.match(await berth(['wait', '--state', 'Running', 'web'], { env }), { code: 0 })
  const { ports, said, end } = await forward(t, 'web', ':8000', ':9000', ':9')
  await eventually('the page comes', async () => (await exchange(ports[0] ?? 0, 'GET / HTTP/1.0\r\n\r\n').catch(() => '')).includes('hello from the vm'))
  const content = randomBytes(3_000_000)
  t.match(await exchange(ports[1] ?? 0, content), createHash('sha256').update(content).digest('hex'))
  t.strictSame((await Promise.all(Array.from({ length: 8 }, async () => (await exchange(ports[0] ?? 0, 'GET / HTTP/1.0\r\n\r\n')).includes('hello')))).every(Boolean), true)
  await t.rejects(exchange(ports[2] ?? 0, 'x'), { code: 'ECONNRESET' })
  await eventually('it is told', async () => await Promise.resolve(said().includes('nobody listens on port 9')))
  t.equal(await end(), 130)
})

t.test('a port that is taken, and an instance that does not run, are told', async (t) => {
  t.match(await berth(['port-forward', 'web', `127.0.0.1:${new URL(server.url).port}:80`], { env }), { code: 1, error: /cannot be listened on/ })
  t.match(await berth(['port-forward', 'none', '80'], { env }), { code: 3 })
  t.match(await berth(['standby', 'web'], { env }), { code: 0 })
  const { ports, said, end } = await forward(t, 'web', ':8000')
  await t.rejects(exchange(ports[0] ?? 0, 'x'), { code: 'ECONNRESET' })
  await eventually('it is told', async () => await Promise.resolve(said().includes('must be Running')))
  t.equal(await end(), 130)
})

/** The command, running; the ports that it listens on, in the order of the arguments. */
async function forward (t: Test, ...args: readonly string[]): Promise<{ ports: number[], said: () => string, end: () => Promise<number | null> }> {
  const child = spawn(process.execPath, [mainFile, 'port-forward', ...args], { env: { ...clientEnvironment(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => { child.once('close', resolve) })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let out = ''
  let said = ''
  child.stdout.on('data', (chunk) => { out += String(chunk) })
  child.stderr.on('data', (chunk) => { said += String(chunk) })
  await eventually('it listens', async () => await Promise.resolve(out.trimEnd().split('\n').length === args.length - 1 && out.endsWith('\n')), { explain: async () => await Promise.resolve(out + said) })
  return {
    ports: [...out.matchAll(/^127\.0\.0\.1:(\d+) → web:/gm)].map(([, port]) => Number(port)),
    said: () => said,
    end: async () => {
      child.kill('SIGINT')
      return await ended
    }
  }
}

/** Sends all, ends its side, and gives what comes until the other side ends. */
async function exchange (port: number, content: string | Buffer): Promise<string> {
  return await new Promise<string>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => { socket.end(content) })
    let text = ''
    socket.on('data', (chunk) => { text += String(chunk) })
    socket.once('end', () => resolve(text))
    socket.once('error', reject)
  })
}
