// The key that root finds on the server's own host, and who listens at that server's address.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chown, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { createApi, type Api } from '../../../cli/api/client.ts'
import { openSocket } from '../../../cli/api/socket.ts'
import { findTarget } from '../../../cli/connection/target.ts'
import { serverFindings } from '../../../cli/doctor/server.ts'
import { testFolder } from '../../helpers/folder.ts'

const NOBODY = 65_534
const KEY = 'the-key-of-this-host'
const asRoot = process.getuid?.() === 0 ? {} : { skip: 'a listener of another user needs root' }

/** A program that answers each request with `[]`, and prints first its port and then all that it hears. */
const LISTENER = `
const server = require('node:net').createServer((socket) => {
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => { process.stdout.write(bytes); socket.end('HTTP/1.1 200 OK\\r\\nx-request-id: 1\\r\\ncontent-length: 2\\r\\n\\r\\n[]') })
}).listen(0, '127.0.0.1', () => process.stdout.write(server.address().port + '\\n'))`

async function listenerOf (t: Test, uid: number): Promise<{ readonly url: string, readonly child: ChildProcess, heard (): string }> {
  const child = spawn(process.execPath, ['-e', LISTENER], { uid, gid: uid, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let heard = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { heard += text })
  await once(child.stdout, 'data')
  const [port = ''] = heard.split('\n')
  return { url: `http://127.0.0.1:${port}`, child, heard: () => heard }
}

async function apiAt (t: Test, url: string, owner = 0): Promise<Api> {
  const keyFile = join(testFolder(t), 'admin.key')
  await writeFile(keyFile, `${KEY}\n`, { mode: 0o600 })
  if (owner !== 0) await chown(keyFile, owner, owner)
  return createApi(await findTarget({}, { BERTH_CONTEXTS: '/nonexistent' }, { url, keyFile }), 'test', 5000, new AbortController().signal)
}

/** Each way on which the command speaks to a server. */
const WAYS: Readonly<Record<string, (api: Api) => Promise<unknown>>> = {
  'a call': async (api) => await api.call('GET', '/instances'),
  'a list': async (api) => await api.list('/instances'),
  'a stream': async (api) => await api.stream('GET', '/events'),
  'an upload': async (api) => await api.call('POST', '/builds', { upload: { content: Readable.from(['x']), headers: {} } }),
  'a WebSocket': async (api) => await openSocket(api, '/instances/web/exec', new AbortController().signal)
}

t.test('the key of this host goes to no other user\'s process at its server\'s address, whatever is spoken', asRoot, async (t) => {
  const { url, heard } = await listenerOf(t, NOBODY)
  const api = await apiAt(t, url)
  for (const [way, speak] of Object.entries(WAYS)) await t.rejects(speak(api), { message: /answered by a process of user 65534, and not by one of root .*: the key in that file was not sent/, hint: /--token-file/, exitCode: 4 }, way)
  t.match(await serverFindings([], async () => await Promise.resolve(api)), [{ subject: 'server', verdict: 'ok' }, { subject: 'database' }, { subject: 'key', verdict: 'failed', found: /user 65534/, remedy: /--token-file/ }])
  t.match(heard(), /GET \/health/)
  t.notMatch(heard(), /authorization|the-key/i)
})

t.test('it goes to a process of root\'s, and to one of the owner of its file', asRoot, async (t) => {
  for (const [uid, owner] of [[0, 0], [0, NOBODY], [NOBODY, NOBODY]] as const) {
    const { url, heard } = await listenerOf(t, uid)
    const api = await apiAt(t, url, owner)
    t.strictSame(await api.call('GET', '/instances'), [])
    t.match(heard(), `authorization: Bearer ${KEY}`, `${uid} ${owner}`)
  }
})

t.test('a server that listens at all addresses, IPv6 too, is found', async (t) => {
  const server = createServer((socket) => { socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]')) }).listen(0, '::')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  t.strictSame(await (await apiAt(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)).call('GET', '/instances'), [])
})

t.test('what is said on a connection that nobody has accepted yet waits until it is known who does', asRoot, async (t) => {
  // The kernel completes the connection all the same. Up to 6.16 its list names root for it until somebody accepts.
  const { url, child, heard } = await listenerOf(t, NOBODY)
  child.kill('SIGSTOP')
  const asked = (await apiAt(t, url)).call('GET', '/instances')
  const refused = t.rejects(asked, { message: /user 65534/ })
  await new Promise((resolve) => { setTimeout(resolve, 200) })
  child.kill('SIGCONT')
  await refused
  t.notMatch(heard(), /the-key/)
})
