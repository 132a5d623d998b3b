import { once } from 'node:events'
import { chown, link, mkdir, readdir, symlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { hasCode } from '../../../core/errors/system-code.ts'
import { connectUnix, listenUnix } from '../../../core/process/unix-socket.ts'
import { testFolder } from '../../helpers/folder.ts'

t.test('a socket works in a folder whose path is far longer than a socket path may be', async (t) => {
  const folder = join(testFolder(t), 'x'.repeat(120), 'y'.repeat(120))
  await mkdir(folder, { recursive: true })
  const server = createServer((socket) => socket.pipe(socket))
  await listenUnix(server, folder, 'socket')
  t.same(await readdir(folder), ['socket'])
  const socket = await connectUnix(folder, 'socket')
  socket.end('hello')
  const [data] = await once(socket, 'data')
  t.equal(String(data), 'hello')
  socket.destroy()
  server.close()
  await once(server, 'close')
  t.same(await readdir(folder), [], 'the socket is removed at its own place')
})

t.test('connecting fails clearly where nobody listens', async (t) => {
  const folder = testFolder(t)
  await t.rejects(connectUnix(folder, 'socket'), { code: 'ENOENT' })
  await t.rejects(connectUnix(join(folder, 'none'), 'socket'), { code: 'ENOENT' })
})

t.test('listening fails where the name is taken', async (t) => {
  const folder = testFolder(t, { socket: '' })
  await t.rejects(listenUnix(createServer(), folder, 'socket'), { code: 'EADDRINUSE' })
})

t.test('a connection that is reset at any moment is an ended one and no uncaught error', async (t) => {
  const folder = testFolder(t)
  // Unread bytes make the end a reset.
  const server = createServer((socket) => { setImmediate(() => { socket.destroy() }) })
  await listenUnix(server, folder, 's')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  for (let n = 0; n < 200; n++) {
    const socket = await connectUnix(folder, 's').catch((error: unknown) => { t.match(error, { code: 'ECONNRESET' }) })
    if (socket === undefined) continue
    socket.write('unread')
    socket.resume()
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
    t.ok(socket.destroyed)
  }
})

t.test('a connection that is closed at once is refused, or its end is still to be heard', async (t) => {
  const folder = testFolder(t)
  const server = createServer((socket) => { socket.destroy() })
  await listenUnix(server, folder, 's')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  // As many as keep the threads busy that close files.
  const found = await Promise.all(Array.from({ length: 200 }, async () => {
    try {
      const socket = await connectUnix(folder, 's')
      const isOver = socket.destroyed
      socket.destroy()
      return isOver ? 'over, and nobody hears of it' : 'open'
    } catch (error) {
      return hasCode(error, 'ECONNRESET') ? 'refused' : String(error)
    }
  }))
  t.same(found.filter((each) => each !== 'open' && each !== 'refused'), [])
})

t.test('a link to another socket is not followed, and a plain file is none', async (t) => {
  const folder = testFolder(t, { elsewhere: {}, here: { file: '' } })
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.destroy()
  })
  await listenUnix(server, join(folder, 'elsewhere'), 's')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  await symlink('../elsewhere/s', join(folder, 'here', 'link'))
  await t.rejects(connectUnix(join(folder, 'here'), 'link'), { name: 'NotASocket' })
  await t.rejects(connectUnix(join(folder, 'here'), 'file'), { name: 'NotASocket' })
  t.equal(connections, 0)
  await symlink('elsewhere', join(folder, 'folder'))
  await t.rejects(connectUnix(join(folder, 'folder'), 's'), { code: 'ENOTDIR' }, 'nor is a link in the folder\'s place')
})

t.test('a socket that another user put a name of into the folder is refused', { skip: process.getuid?.() === 0 ? false : 'giving files away takes root' }, async (t) => {
  const folder = testFolder(t, { theirs: {} })
  const server = createServer((socket) => { socket.on('error', () => {}).resume() })
  await listenUnix(server, folder, 's')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  await link(join(folder, 's'), join(folder, 'theirs', 's'))
  await chown(join(folder, 'theirs'), 65534, 65534)
  await t.rejects(connectUnix(join(folder, 'theirs'), 's'), { name: 'NotASocket', message: /belongs to user 0, and its folder to user 65534/ })
  await chown(join(folder, 's'), 65534, 65534)
  const socket = await connectUnix(join(folder, 'theirs'), 's')
  socket.destroy()
})
