// Copies by the official SDK and by hand, on a scripted guest.
import { once } from 'node:events'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { cpFromInstance, cpToInstance } from '@onkernel/hypeman/lib/cp'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import type { Plugin } from '../../../../core/plugins/manifest.ts'
import { contentFrames } from '../../../../plugins/instances/sockets/cp.ts'
import type { GuestEntry } from '../../../../plugins/guest/contract.ts'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { startApp, type TestApp } from '../app.ts'
import { until } from '../crash.ts'
import { testFolder } from '../../../helpers/folder.ts'
import { limitMs, mainThreadMs } from '../../../helpers/processor-time.ts'
import { leaseWatcher } from './lease-watcher.ts'

async function running (t: Test, plugins: readonly Plugin[] = []): Promise<TestApp> {
  const app = await startApp(t, { listen: true, plugins })
  await app.make('web')
  await app.waitFor('web', 'Running')
  return app
}

const configOf = ({ app }: TestApp) => ({ baseURL: app.address(), apiKey: ADMIN_KEY })

const file = (path: string, content: string | Buffer, chunks = 1): GuestEntry => {
  const bytes = Buffer.from(content)
  const size = Math.ceil(bytes.length / chunks) || 1
  const parts = Array.from({ length: chunks }, (_, index) => bytes.subarray(index * size, (index + 1) * size)).filter((part) => part.length > 0)
  return { path, exists: true, type: 'file', mode: 0o640, sizeBytes: bytes.length, mtime: 1_700_000_000, uid: 0, gid: 0, content: Readable.from(parts) }
}

/** One session by hand: sends the messages and collects the answers until the last one. */
async function session ({ app }: TestApp, messages: (string | Buffer)[], isLast: (message: Record<string, unknown>) => boolean): Promise<Record<string, unknown>[]> {
  const socket = new WebSocket(`${app.address().replace('http', 'ws')}/instances/web/cp`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  await once(socket, 'open')
  const answers: Record<string, unknown>[] = []
  const done = new Promise<void>((resolve) => {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) return
      const message = JSON.parse(data.toString())
      answers.push(message)
      if (isLast(message)) resolve()
    })
    socket.on('close', () => { resolve() })
  })
  for (const message of messages) socket.send(message)
  await done
  socket.close()
  return answers
}

t.test('the SDK copies a file into the guest', async (t) => {
  const app = await running(t)
  const folder = testFolder(t, { 'a.txt': 'hello' })
  await cpToInstance(configOf(app), { instanceId: 'web', srcPath: join(folder, 'a.txt'), dstPath: '/x/a.txt', mode: 0o600 })
  t.match(app.host.vm.puts, [{ spec: { path: '/x/a.txt', type: 'file', mode: 0o600 }, bytes: Buffer.from('hello') }])
})

t.test('the SDK copies a large file and a folder into the guest', async (t) => {
  const app = await running(t)
  const folder = testFolder(t, { tree: { 'a.json': '{"type":"end"}', sub: { empty: '' } } })
  const large = Buffer.alloc(5_000_000, 'abc')
  await writeFile(join(folder, 'large'), large)
  await cpToInstance(configOf(app), { instanceId: 'web', srcPath: join(folder, 'large'), dstPath: '/large' })
  t.ok(app.host.vm.puts[0]?.bytes.equals(large))
  await cpToInstance(configOf(app), { instanceId: 'web', srcPath: join(folder, 'tree'), dstPath: '/tree' })
  t.same(app.host.vm.puts.slice(1).map(({ spec, bytes }) => [spec.path, spec.type, bytes.toString()]), [
    ['/tree', 'dir', ''], ['/tree/a.json', 'file', '{"type":"end"}'], ['/tree/sub', 'dir', ''], ['/tree/sub/empty', 'file', '']
  ])
})

t.test('a request that is none is refused by its first fault, and however long it is keeps the server from nobody', async (t) => {
  const app = await running(t)
  const limit = limitMs()
  for (const [text, message] of [
    ['{"direction":"to"}', /guest_path is required/], ['{"direction":"up","guest_path":"/"}', /direction must be one of to, from, stat/],
    [`{${Array.from({ length: 95_000 }, (_, at) => `"${at}":0`).join(',')}}`, /^the message has more than 20000/], [`{"command":[${'0,'.repeat(500_000)}0]}`, /^the message has more than 20000/],
    [`{${Array.from({ length: 19_000 }, (_, at) => `"f${at}":0`).join(',')}}`, /is required|not a known field/]
  ] as const) {
    const start = mainThreadMs()
    t.match(await session(app, [text], () => true), [{ type: 'error', message }])
    const took = mainThreadMs() - start
    t.ok(took < limit, `${text.slice(0, 20)}: ${took} ms of ${limit}`)
  }
})

t.test('a guest that refuses is told to the SDK', async (t) => {
  const app = await running(t)
  const folder = testFolder(t, { a: 'x' })
  await t.rejects(cpToInstance(configOf(app), { instanceId: 'web', srcPath: join(folder, 'a'), dstPath: '/denied' }), { message: /permission denied/ })
  await t.rejects(cpFromInstance(configOf(app), { instanceId: 'web', srcPath: '/none', dstPath: join(folder, 'b') }), { message: /no such file/ })
})

const tricky: Record<string, string> = {
  'a JSON object of 40 bytes': '{"type":"header","path":"../../evil","x"}',
  'a protocol message': '{"type":"end","final":true}',
  'an array': '[{"type":"end","final":true}]',
  'brackets before an object': '{[{{"type":"end","final":true}',
  'only brackets': '[[[[{{{{',
  'one bracket': '{',
  nothing: '',
  text: 'hello'
}
for (const [name, content] of Object.entries(tricky)) {
  t.test(`the SDK gets ${name} out of the guest as it is`, async (t) => {
    const app = await running(t)
    for (const chunks of [1, 2, Math.max(1, content.length)]) {
      app.host.entries = [file('', content, chunks)]
      const folder = testFolder(t)
      const target = join(folder, 'f')
      await cpFromInstance(configOf(app), { instanceId: 'web', srcPath: '/f', dstPath: folder })
      t.equal((await readFile(target)).toString(), content)
      t.equal((await stat(target)).mtimeMs, 1_700_000_000_000)
    }
  })
}

t.test('no frame of content parses as a message', async (t) => {
  for (const content of Object.values(tricky)) {
    const frames = contentFrames(Buffer.from(content))
    t.equal(Buffer.concat(frames).toString(), content)
    for (const frame of frames) {
      if (frame[0] === 0x7b || frame[0] === 0x5b) t.throws(() => JSON.parse(frame.toString()))
    }
  }
})

t.test('the SDK copies a folder of 1,000 files out of the guest', async (t) => {
  const app = await running(t)
  app.host.entries = [
    { path: '', exists: true, type: 'dir', mode: 0o755, mtime: 1 },
    ...Array.from({ length: 1000 }, (_, index) => file(`f${index}`, `content ${index}`)),
    { path: 'pipe', exists: true, type: 'other', mode: 0o644 },
    { path: 'link', exists: true, type: 'symlink', mode: 0o777, linkTarget: 'f1' }
  ]
  const folder = testFolder(t)
  const target = join(folder, 'dir')
  await cpFromInstance(configOf(app), { instanceId: 'web', srcPath: '/srv/../dir/', dstPath: folder })
  // The SDK does not wait until the last of what it writes has been written.
  await until(async () => (await readdir(target)).length === 1001 && await readFile(join(target, 'f999'), 'utf8') === 'content 999')
  const names = await readdir(target)
  t.equal(names.length, 1001)
  t.equal((await readFile(join(target, 'f999'))).toString(), 'content 999')
  t.equal((await stat(join(target, 'f7'))).mode & 0o777, 0o640)
})

t.test('an entry that cannot be read fails the copy', async (t) => {
  const app = await running(t)
  app.host.entries = [{ path: '', exists: true, type: 'dir', mode: 0o755 }, { path: 'x', exists: true, error: 'permission denied' }]
  await t.rejects(cpFromInstance(configOf(app), { instanceId: 'web', srcPath: '/dir', dstPath: join(testFolder(t), 'o') }), { message: /at x: permission denied/ })
})

t.test('stat answers in one message', async (t) => {
  const app = await running(t)
  app.host.files.set('/a', { exists: true, type: 'dir', mode: 0o755, sizeBytes: 4096 })
  const ask = async (path: string) => await session(app, [JSON.stringify({ direction: 'stat', guest_path: path })], () => true)
  t.same(await ask('/a'), [{ type: 'stat', exists: true, is_dir: true, is_file: false, is_symlink: false, mode: 0o755, size: 4096 }])
  t.match(await ask('/b'), [{ type: 'stat', exists: false }])
})

t.test('a result tells how much was written; owner and name reach the guest', async (t) => {
  const app = await running(t)
  const request = { direction: 'to', guest_path: '/etc', src_basename: 'conf', uid: 5, gid: 6 }
  const [answer] = await session(app, [JSON.stringify(request), Buffer.from('abc'), '{"type":"end"}'], ({ type }) => type === 'result')
  t.same(answer, { type: 'result', success: true, bytes_written: 3 })
  t.match(app.host.vm.puts[0]?.spec, { path: '/etc', basename: 'conf', uid: 5, gid: 6, mode: 0o644 })
})

t.test('faulty messages are answered', async (t) => {
  const app = await running(t)
  const table: readonly [(string | Buffer)[], object][] = [
    [['{'], { type: 'error', message: /JSON/ }],
    [['{"direction":"sideways","guest_path":"/"}'], { type: 'error', message: /direction/ }],
    [['{"direction":"to"}'], { type: 'error', message: /guest_path/ }],
    [['{"direction":"to","guest_path":"/a","mode":99999}'], { type: 'error', message: /mode/ }],
    [['{"direction":"to","guest_path":"/a"}', 'what?'], { type: 'result', success: false, error: /binary/ }]
  ]
  for (const [messages, expected] of table) t.match(await session(app, messages, () => true), [expected])
})

t.test('a client that vanishes midway leaves no file', async (t) => {
  const app = await running(t)
  const socket = new WebSocket(`${app.app.address().replace('http', 'ws')}/instances/web/cp`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  await once(socket, 'open')
  socket.send('{"direction":"to","guest_path":"/half"}')
  socket.send(Buffer.from('half of it'))
  await new Promise((resolve) => { setTimeout(resolve, 100) })
  socket.terminate()
  await new Promise((resolve) => { setTimeout(resolve, 200) })
  t.same(app.host.vm.puts, [])
})

t.test('a copy that the guest never answers ends with its client, and keeps the instance awake no longer', async (t) => {
  const watcher = leaseWatcher()
  const app = await running(t, [watcher.plugin])
  app.host.answersFiles = false
  const { body: { id } } = await app.call('GET', '/instances/web')
  const held = (): boolean => watcher.reasons(String(id)).includes('cp')
  for (const direction of ['from', 'stat', 'to']) {
    const socket = new WebSocket(`${app.app.address().replace('http', 'ws')}/instances/web/cp`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
    await once(socket, 'open')
    socket.send(JSON.stringify({ direction, guest_path: '/mnt' }))
    if (direction === 'to') socket.send('{"type":"end"}')
    await until(held)
    await new Promise((resolve) => { setTimeout(resolve, 100) })
    socket.terminate()
    await until(() => !held())
  }
  t.same(app.host.vm.cancelled, ['get /mnt', 'stat /mnt', 'put /mnt'])
})
