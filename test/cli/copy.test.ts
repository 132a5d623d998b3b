// Files that an instance sends are written below the target and nowhere else.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, lstat, mkdir, readdir, readFile, rm, symlink, writeFile, readlink, stat, utimes } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { pack } from 'tar-stream'
import { WebSocketServer } from 'ws'
import { archiveEntries, writeArchive } from '../../cli/copy/archive.ts'
import type { Entry } from '../../cli/copy/entry.ts'
import { localEntries } from '../../cli/copy/local-entries.ts'
import { writeLocally as writeOrSkip } from '../../cli/copy/local-write.ts'
import { placeOf } from '../../cli/copy/place.ts'
import { contentOf } from '../../cli/local-file.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { berth } from './berth.ts'

async function * given (...entries: readonly Partial<Entry>[]): AsyncGenerator<Entry> {
  for (const entry of entries) yield { path: '', kind: 'file', mode: 0o644, size: 1, mtime: 0, content: Readable.from(['x']), ...entry }
}

/** Writes all of them. */
async function writeLocally (target: string, entries: AsyncIterable<Entry>): Promise<void> {
  await writeOrSkip(target, entries, ({ path }) => { throw new Error(`${path} is left out`) })
}

/** Writes them, and gives the paths of those that are left out. */
async function leftOutOf (target: string, ...entries: readonly Partial<Entry>[]): Promise<string[]> {
  const paths: string[] = []
  await writeOrSkip(target, given(...entries), ({ path }) => { paths.push(path) })
  return paths
}

t.test('a place is an instance\'s, a path here, or a stream', async (t) => {
  t.strictSame(placeOf('web:/srv'), { kind: 'instance', instance: 'web', path: '/srv' })
  t.strictSame(placeOf('./a:b'), { kind: 'local', path: './a:b' })
  t.strictSame(placeOf('/a:b'), { kind: 'local', path: '/a:b' })
  t.strictSame(placeOf('-'), { kind: 'stream' })
  t.throws(() => placeOf('web:'), /a path in the instance is needed/)
})

t.test('what a hostile instance sends stays below the target', async (t) => {
  const folder = testFolder(t, { outside: 'kept', target: {} })
  const target = join(folder, 'target')
  await mkdir(join(target, 'a'), { recursive: true })
  for (const path of ['../outside', '/etc/x', 'a/../../outside']) await t.rejects(writeLocally(target, given({ path })), /leads out of what is copied/, path)
  for (const entry of [{ path: 'l', target: '../outside' }, { path: 'l', target: '/etc' }, { path: 'a/l', target: '../../x' }]) {
    t.strictSame(await leftOutOf(target, { ...entry, kind: 'link' }), [entry.path])
    t.notOk(await lstat(join(target, entry.path)).catch(() => undefined), JSON.stringify(entry))
  }
  await symlink(folder, join(target, 'trap'))
  await t.rejects(writeLocally(target, given({ path: 'trap/outside' })), /is no folder/)
  await writeLocally(target, given({ path: 'inner', kind: 'link', target: 'a' }))
  await t.rejects(writeLocally(target, given({ path: 'inner/file' })), /is no folder/, 'also through a link that the instance sent itself')
  t.equal(await readFile(join(folder, 'outside'), 'utf8'), 'kept')
})

t.test('a folder of an instance takes the place of a folder only, and changes the mode of nothing outside', async (t) => {
  const folder = testFolder(t, { private: {}, target: { file: 'kept', there: {} } })
  const target = join(folder, 'target')
  await chmod(join(folder, 'private'), 0o700)
  await symlink('../private', join(target, 'x'))
  await symlink('nowhere', join(target, 'y'))
  for (const path of ['x', 'x/', 'x/.', 'y', 'file']) await t.rejects(writeLocally(target, given({ path, kind: 'folder', mode: 0o755, content: Readable.from([]) })), /is no folder, and one of that name is copied/, path)
  t.equal((await stat(join(folder, 'private'))).mode & 0o777, 0o700)
  t.equal(await readFile(join(target, 'file'), 'utf8'), 'kept')
  for (const path of ['there', 'new']) await writeLocally(target, given({ path, kind: 'folder', mode: 0o711 }))
  for (const path of ['there', 'new']) t.equal((await stat(join(target, path))).mode & 0o777, 0o711, path)
})

t.test('below a link at the target itself nothing is written, wherever it leads to', async (t) => {
  const folder = testFolder(t, { '.ssh': { authorized_keys: 'mine' } })
  const target = join(folder, 'src')
  for (const path of ['', '.', './.']) {
    await t.rejects(leftOutOf(target, { path, kind: 'link', target: '.ssh' }, { path: 'authorized_keys', content: Readable.from(['theirs']) }), /is no folder/, path)
    await rm(target, { force: true })
  }
  t.equal(await readFile(join(folder, '.ssh/authorized_keys'), 'utf8'), 'mine')
})

t.test('a link that is copied by itself would lead to a neighbour of the target: it is not made, and a second copy goes through no link either', async (t) => {
  const folder = testFolder(t, { '.ssh': { authorized_keys: 'mine' } })
  const target = join(folder, 'out')
  await chmod(join(folder, '.ssh'), 0o700)
  t.strictSame(await leftOutOf(target, { kind: 'link', target: '.ssh' }), [''])
  t.strictSame(await readdir(folder), ['.ssh'])
  await symlink('.ssh', target)
  const second = given({ kind: 'folder', mode: 0o755, content: Readable.from([]) }, { path: 'authorized_keys', content: Readable.from(['theirs']) })
  await t.rejects(writeLocally(target, second), /out is no folder, and one of that name is copied/)
  await t.rejects(writeLocally(target, given({ path: 'authorized_keys', content: Readable.from(['theirs']) })), /out is no folder, and something in it is copied/, 'nor without the folder\'s own entry')
  t.equal((await stat(join(folder, '.ssh'))).mode & 0o777, 0o700)
  t.equal(await readFile(join(folder, '.ssh/authorized_keys'), 'utf8'), 'mine')
})

t.test('links of an instance do not lead out through one another', async (t) => {
  const folder = testFolder(t, { outside: 'kept', target: {} })
  const target = join(folder, 'target')
  t.strictSame(await leftOutOf(target, { path: 'here', kind: 'link', target: '.' }, { path: 'l', kind: 'link', target: 'here/../outside' }), ['l'])
  t.strictSame(await readdir(target), ['here'])
  await writeLocally(target, given({ path: 'a', kind: 'folder' }, { path: 'a/l', kind: 'link', target: './../here' }))
  t.equal(await readlink(join(target, 'a/l')), './../here', 'those that go up first are as they were')
})

t.test('a copy that is cut off leaves what was there before, and no half file', async (t) => {
  const target = testFolder(t, { f: 'before' })
  const cutOff = (): Readable => Readable.from((async function * () {
    yield 'half of it'
    await Promise.resolve()
    throw new Error('the connection was lost')
  })())
  for (const name of ['f', 'new']) await t.rejects(writeLocally(join(target, name), given({ content: cutOff() })), /connection was lost/, name)
  t.strictSame(await readdir(target), ['f'])
  t.equal(await readFile(join(target, 'f'), 'utf8'), 'before')
})

t.test('what is no file or link is not replaced', async (t) => {
  const path = join(testFolder(t), 'socket')
  const server = createServer().listen(path)
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  await t.rejects(writeLocally(path, given({})), /is a device, pipe or socket/)
  t.ok((await lstat(path)).isSocket())
})

t.test('a place that cannot be written to is named', async (t) => {
  const folder = testFolder(t, { file: '' })
  await t.rejects(writeLocally(join(folder, 'none/x'), given({})), { name: 'Failure', message: /none\/x cannot be written: ENOENT/ })
  await t.rejects(writeLocally(folder, given({ path: 'none/x', kind: 'link', target: 'x' })), { name: 'Failure', message: /none\/x cannot be written: ENOENT/ })
  await t.rejects(writeLocally(join(folder, 'file/x'), given({ kind: 'folder' })), { name: 'Failure', message: /file\/x cannot be written: ENOTDIR/ })
})

t.test('rights beyond the user\'s own are not taken over', async (t) => {
  const target = testFolder(t)
  await writeLocally(join(target, 'f'), given({ mode: 0o6777 }))
  t.equal((await stat(join(target, 'f'))).mode & 0o7777 & ~process.umask(), 0o755 & ~process.umask())
})

t.test('a folder goes into an archive and out of it unchanged', async (t) => {
  const from = testFolder(t, { from: { empty: {}, file: 'content', deep: { other: 'y'.repeat(100_000) } }, to: {} })
  await symlink('file', join(from, 'from/link'))
  await utimes(join(from, 'from/file'), 1_000_000, 1_000_000)
  const archive = new PassThrough()
  const [, entries] = await Promise.all([
    writeArchive(archive, 'top', localEntries(join(from, 'from'), false)).then(() => archive.end()),
    writeLocally(join(from, 'to'), archiveEntries(archive))
  ])
  t.equal(entries, undefined)
  t.equal(await readFile(join(from, 'to/top/file'), 'utf8'), 'content')
  t.equal((await stat(join(from, 'to/top/file'))).mtimeMs, 1_000_000_000)
  t.equal((await readFile(join(from, 'to/top/deep/other'), 'utf8')).length, 100_000)
  t.equal(await readlink(join(from, 'to/top/link')), 'file')
  t.ok((await stat(join(from, 'to/top/empty'))).isDirectory())
})

/** A server with a folder in place of each instance: it answers `stat`, and keeps what it is sent by `cp`. */
async function copyServer (t: Test): Promise<{ readonly env: Readonly<Record<string, string>>, readonly got: Map<string, string> }> {
  const got = new Map<string, string>()
  const server = createHttpServer((_request, reply) => { reply.end('{"is_dir":true}') }).listen(0, '127.0.0.1')
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    let path = ''
    socket.on('message', (data: Buffer, isBinary) => {
      const text = String(data)
      if (isBinary) got.set(path, `${got.get(path) ?? ''}${text}`)
      else if (text.includes('guest_path')) got.set(path = (JSON.parse(text) as { guest_path: string }).guest_path, '')
      else socket.send('{"type":"result","success":true}')
    })
  })
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
  })
  await once(server, 'listening')
  return { env: { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }, got }
}

t.test('what cannot be copied into an instance is named, the rest is copied, and the exit code says so', async (t) => {
  const { env, got } = await copyServer(t)
  const archive = pack()
  archive.entry({ name: 'h', type: 'directory' })
  archive.entry({ name: 'h/one' }, 'a\n')
  archive.entry({ name: 'h/two', type: 'link', linkname: 'h/one' })
  archive.entry({ name: 'h/three', type: 'symlink', linkname: 'one' })
  archive.entry({ name: 'h/four', type: 'fifo' })
  archive.entry({ name: 'h/../../up' }, 'c')
  archive.entry({ name: 'h/five' }, 'b')
  archive.finalize()
  const input = await buffer(archive)
  for (const quiet of [[], ['-q']]) {
    got.clear()
    const { code, error } = await berth(['cp', ...quiet, '-', 'vm:/srv'], { env, input })
    t.equal(code, 1)
    t.strictSame(error.trimEnd().split('\n'), [
      'berth: left out: h/two is a further name of another file; tar --hard-dereference stores a file for each name',
      'berth: left out: h/three is a symbolic link; tar -h stores what it points to',
      'berth: left out: h/four is neither file, folder nor link',
      'berth: left out: h/../../up leads out of what is copied'
    ])
    t.strictSame(Object.fromEntries(got), { '/srv/h': '', '/srv/h/one': 'a\n', '/srv/h/five': 'b' })
  }
  const folder = testFolder(t, { file: 'x' })
  await symlink('file', join(folder, 'link'))
  await promisify(execFile)('mkfifo', [join(folder, 'pipe')])
  t.match(await berth(['cp', `${folder}/.`, 'vm:/srv'], { env }), { code: 1, error: /^berth: left out: .*link is a symbolic link; -L copies what it points to\nberth: left out: .*pipe is neither file, folder nor link\n$/ })
  t.match(await berth(['cp', join(folder, 'file'), 'vm:/srv'], { env }), { code: 0, error: '' })
})

/** A server whose instance sends these headers, one after the other, whatever it is asked for. */
async function sendingServer (t: Test, ...headers: readonly object[]): Promise<Readonly<Record<string, string>>> {
  const server = createHttpServer().listen(0, '127.0.0.1')
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.once('message', () => {
      for (const [index, header] of headers.entries()) {
        socket.send(JSON.stringify({ type: 'header', mode: 0o644, is_dir: false, size: 0, mtime: 0, ...header }))
        socket.send(JSON.stringify({ type: 'end', final: index === headers.length - 1 }))
      }
    })
  })
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
  })
  await once(server, 'listening')
  return { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }
}

t.test('a link that leads out of a copied folder is named, the rest is copied, and the exit code says so', async (t) => {
  const env = await sendingServer(t, { path: 'etc', is_dir: true }, { path: 'etc/localtime', is_symlink: true, link_target: '/usr/share/zoneinfo/UTC' }, { path: 'etc/mtab', is_symlink: true, link_target: 'motd' }, { path: 'etc/motd' })
  const folder = testFolder(t)
  const { code, error } = await berth(['cp', 'vm:/etc', folder], { env })
  t.equal(error, `berth: left out: ${folder}/etc/localtime is a symbolic link to /usr/share/zoneinfo/UTC, which leads out of what is copied; - as the target writes an archive, which keeps it\n`)
  t.equal(code, 1)
  t.strictSame((await readdir(join(folder, 'etc'))).sort(), ['motd', 'mtab'])
  t.match(await berth(['cp', 'vm:/etc', '-'], { env }), { code: 0, error: '', out: /\/usr\/share\/zoneinfo\/UTC/ })
})

t.test('what is copied goes through a link to a folder only if that is asked for', async (t) => {
  const folder = testFolder(t, { there: {} })
  await symlink('there', join(folder, 'out'))
  const env = await sendingServer(t, { path: 'out', is_dir: true }, { path: 'out/file' })
  t.match(await berth(['cp', 'vm:/out', folder], { env }), { code: 1, error: /out is no folder, and one of that name is copied\n$/ })
  t.strictSame(await readdir(join(folder, 'there')), [])
  t.match(await berth(['cp', 'vm:/out/.', join(folder, 'out')], { env }), { code: 0, error: '' })
  t.match(await berth(['cp', 'vm:/out', join(folder, 'out')], { env }), { code: 0, error: '' })
  t.strictSame((await readdir(join(folder, 'there'))).sort(), ['file', 'out'])
  const alone = await sendingServer(t, { path: 'new', is_symlink: true, link_target: 'there' })
  for (let time = 0; time < 2; time++) t.match(await berth(['cp', 'vm:/new', join(folder, 'new')], { env: alone }), { code: 1, error: /^berth: left out: .*new is a symbolic link to there, which leads out of what is copied; -L copies what it points to\n$/ })
  t.notOk((await readdir(folder)).includes('new'))
})

t.test('a file that cannot be read is named', async (t) => {
  const folder = testFolder(t)
  await writeFile(join(folder, 'x'), '')
  await t.rejects(writeArchive(new PassThrough().resume(), 'top', localEntries(join(folder, 'none'), false)), /none cannot be read/)
})

/** A file that root cannot open for reading either. */
const WRITE_ONLY = '/sys/bus/platform/uevent'

t.test('a file that cannot be opened ends a copy with its name, though the server is asked first', { ...existsSync(WRITE_ONLY) ? {} : { skip: `there is no ${WRITE_ONLY}` } }, async (t) => {
  const { env, got } = await copyServer(t)
  t.match(await berth(['cp', WRITE_ONLY, 'vm:/srv'], { env }), { code: 1, out: '', error: /^berth: \/sys\/bus\/platform\/uevent cannot be read: EACCES.*\n$/ })
  t.strictSame([...got], [])
})

t.test('what is no archive, or half of one, ends a copy with one line', async (t) => {
  const { env } = await copyServer(t)
  const archive = pack()
  archive.entry({ name: 'one' }, 'x'.repeat(10_000))
  archive.finalize()
  const half = (await buffer(archive)).subarray(0, 5000)
  for (const input of [half, 'x'.repeat(2000)]) t.match(await berth(['cp', '-', 'vm:/srv'], { env, input }), { code: 1, out: '', error: /^berth: the archive cannot be read: .*\n$/ })
})

t.test('an upload whose file cannot be read names it, and does not blame the server', async (t) => {
  const server = createHttpServer((request, reply) => { request.resume().once('end', () => reply.end('{}')) }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  const env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }
  const folder = testFolder(t, { context: { Dockerfile: 'FROM scratch' } })
  for (const [args, name] of [
    [['build', join(folder, 'typo')], 'typo'], [['build', join(folder, 'context/Dockerfile')], 'context/Dockerfile'],
    [['volume', 'create', 'data', '--size', '1', '--from-archive', join(folder, 'none.tgz')], 'none.tgz'], [['volume', 'create', 'data', '--size', '1', '--from-archive', folder], folder]
  ] as const) t.match(await berth(args, { env }), { code: 1, out: '', error: new RegExp(`^berth: \\S*${name} cannot be read: E.*\\n$`) }, args.join(' '))
})

t.test('what is read of a file is at most what was asked for, and no handle stays', async (t) => {
  const file = join(testFolder(t, { large: 'x'.repeat(200_000) }), 'large')
  t.equal((await buffer(await contentOf(file))).length, 200_000)
  t.equal((await buffer(await contentOf(file, 100_000))).length, 100_000)
  t.equal((await buffer(await contentOf(file, 0))).length, 0)
  const [unread, half] = [await contentOf(file), await contentOf(file)]
  await once(half, 'readable')
  for (const each of [unread, half]) each.destroy()
  const open = async (): Promise<string[]> => (await Promise.all((await readdir('/proc/self/fd')).map(async (fd) => await readlink(`/proc/self/fd/${fd}`).catch(() => '')))).filter((path) => path === file)
  await eventually('all are closed', async () => (await open()).length === 0)
})
