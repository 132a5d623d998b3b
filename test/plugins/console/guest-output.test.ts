// What a hostile guest prints does no harm to the page that shows it: the page's own code.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { pageModule } from './page-module.ts'

interface Files { listFolder (id: string, folder: string): Promise<ReadonlyArray<{ readonly name: string, readonly isFolder: boolean }>> }
interface Output { readonly MOST_WAITING: number, boundedOutput (write: (data: Uint8Array | string, drawn?: () => void) => void): (chunk: Uint8Array) => void }

/** The guest's `ls`, on the socket of an exec. */
type Ls = (print: (text: string) => void, end: () => void, socket: WebSocket) => void

t.test('names of a folder are shown, and an ls that prints more than the page can hold is cut off', async (t) => {
  const { guest, page } = await startGuest(t)
  guest.ls = (print, end) => { print('etc/\nhosts\n'); end() }
  t.same(await page.listFolder('one', '/'), [{ name: 'etc', isFolder: true }, { name: 'hosts', isFolder: false }])
  guest.ls = (print, end) => { print('a\n'.repeat(20_001)); end() }
  await t.rejects(page.listFolder('one', '/'), /too many names/)
  let closed: Promise<unknown> | undefined
  guest.ls = (print, _end, socket) => {
    const lines = `${'x'.repeat(1023)}\n`.repeat(64)
    const printing = setInterval(() => { print(lines) }, 1)
    closed = once(socket, 'close').finally(() => { clearInterval(printing) })
  }
  await t.rejects(page.listFolder('one', '/'), /too many names/)
  await closed
})

t.test('a terminal leaves out what comes faster than it is drawn, says so once, and goes on', async (t) => {
  const { boundedOutput, MOST_WAITING } = await pageModule<Output>(t, 'pages/instance/bounded-output.ts')
  const written: Array<Uint8Array | string> = []
  let drawn: Array<() => void> = []
  const show = boundedOutput((data, done) => {
    written.push(data)
    if (done !== undefined) drawn.push(done)
  })
  const draw = (): void => { for (const done of drawn.splice(0)) done() }
  const mebibyte = new Uint8Array(1024 * 1024)
  for (let n = 0; n < 100; n++) show(mebibyte)
  t.equal(written.length * mebibyte.length, MOST_WAITING, 'no more waits')
  draw()
  t.match(written.at(-1), /\b88,080,384 bytes came too fast to be shown/)
  drawn = []
  show(Uint8Array.of(1))
  t.same(written.at(-1), Uint8Array.of(1))
  draw()
  t.same(written.at(-1), Uint8Array.of(1), 'nothing more is told')
  t.equal(written.length, 18)
})

async function startGuest (t: Test): Promise<{ guest: { ls: Ls }, page: Files }> {
  const guest: { ls: Ls } = { ls: () => {} }
  const server = createServer((_request, response) => { response.end(JSON.stringify({ ticket: 'one' })) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.once('message', () => {
      guest.ls((text) => { socket.send(Buffer.concat([Buffer.of(1), Buffer.from(text)])) }, () => {
        socket.send(JSON.stringify({ exitCode: 0 }))
        socket.close(1000)
      }, socket)
    })
  })
  const { port } = server.address() as AddressInfo
  const before = { fetch: globalThis.fetch, WebSocket: Reflect.get(globalThis, 'WebSocket') as unknown, location: Reflect.get(globalThis, 'location') as unknown }
  // What a browser has.
  Object.assign(globalThis, { fetch: async (path: string, init: RequestInit) => await before.fetch(`http://127.0.0.1:${port}${path}`, init), WebSocket, location: { protocol: 'http:', host: `127.0.0.1:${port}` } })
  t.teardown(() => {
    Object.assign(globalThis, before)
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
    server.closeAllConnections()
    server.close()
  })
  return { guest, page: await pageModule<Files>(t, 'pages/instance/file-transfer.ts') }
}
