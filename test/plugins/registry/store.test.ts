// The store's process: private, restarted when it dies, and gone with the server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readlink, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { isAlive, readIdentity } from '../../../core/process/identity.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { createProcessRegister } from '../../../core/process/register.ts'
import { Store } from '../../../plugins/registry/store.ts'
import { KEY, startImagesApp, temporaryFolder } from '../../helpers/images-app.ts'
import { eventually } from '../../helpers/eventually.ts'

const PROGRAM = fileURLToPath(new URL('programs/store.js', import.meta.url))
const log = pino({ level: 'silent' })
const commands = createHostCommands()
const processes = createProcessRegister()

async function startStore (t: Test, folder: string): Promise<Store> {
  const store = new Store({ folder, log, commands, processes })
  t.teardown(() => store.stop())
  await store.start(new AbortController().signal)
  return store
}

t.test('it listens on a private socket only, however long the path', async (t) => {
  const folder = join(await temporaryFolder(t), 'deep'.repeat(40), 'registry')
  const store = await startStore(t, folder)
  t.ok(store.socketPath())
  t.equal((await stat(folder)).mode & 0o777, 0o700)
  t.equal((await stat(join(folder, 'run'))).mode & 0o777, 0o700)
  t.equal((await stat(join(folder, 'run/config.yml'))).mode & 0o777, 0o600)
  const inodes = new Set<string>()
  for (const fd of await readdir(`/proc/${store.pid}/fd`)) {
    // A file may be closed meanwhile.
    const link = await readlink(`/proc/${store.pid}/fd/${fd}`).catch(() => '')
    const inode = /socket:\[(\d+)\]/.exec(link)?.[1]
    if (inode !== undefined) inodes.add(inode)
  }
  const tcp = `${await readFile('/proc/net/tcp', 'utf8')}\n${await readFile('/proc/net/tcp6', 'utf8')}`
  t.notOk(tcp.split('\n').some((line) => inodes.has(line.trim().split(/\s+/)[9] ?? '')), 'no TCP port')
  const pid = store.pid
  await store.stop()
  await store.stop()
  t.equal(store.socketPath(), undefined)
  t.equal(readIdentity(Number(pid)), undefined)
})

t.test('when it hangs it is ended and started again', async (t) => {
  const store = new Store({ folder: join(await temporaryFolder(t), 'registry'), log, commands, processes, probe: { intervalMs: 100, timeoutMs: 2000 } })
  t.teardown(() => store.stop())
  await store.start(new AbortController().signal)
  const pid = Number(store.pid)
  process.kill(pid, 'SIGSTOP')
  await eventually('another store', () => store.pid !== pid && store.socketPath() !== undefined)
  t.equal(readIdentity(pid), undefined, 'the one that hung is gone')
  const next = store.pid
  await delay(1000)
  t.equal(store.pid, next, 'and one that answers is left alone')
})

t.test('when it dies it is started again, and the API says meanwhile that it is away', async (t) => {
  const app = await startImagesApp(t)
  const headers = { authorization: `Bearer ${KEY}` }
  const ask = async (): Promise<number> => {
    const response = await fetch(`${app.url}/v2/_catalog`, { headers })
    await response.arrayBuffer()
    return response.status
  }
  t.equal(await ask(), 200)
  t.equal((await fetch(`${app.url}/v2/its/last/manifests/words`, { headers })).status, 404)
  const { pid } = JSON.parse(await readFile(join(app.dataDir, 'registry/run/process.json'), 'utf8'))
  process.kill(pid, 'SIGKILL')
  await eventually('the store is away', async () => await ask() === 503)
  await eventually('the store is back', async () => await ask() === 200)
  t.match(app.lines.find(({ msg }) => msg === 'the registry store has ended (SIGKILL); it is started again'), { said: /manifest unknown/ }, 'its last words are in the log')
  const next = JSON.parse(await readFile(join(app.dataDir, 'registry/run/process.json'), 'utf8'))
  t.not(next.pid, pid)
  await app.stop()
  t.equal(readIdentity(next.pid), undefined, 'it ends with the server')
})

t.test('one that an earlier server left is ended at the start, and a stranger with its pid is not', async (t) => {
  const folder = join(await temporaryFolder(t), 'registry')
  await (await startStore(t, folder)).stop()
  const orphan = spawn('sleep', ['600'], { stdio: 'ignore' })
  const stranger = spawn('sleep', ['600'], { stdio: 'ignore' })
  t.teardown(() => { orphan.kill('SIGKILL'); stranger.kill('SIGKILL') })
  const identity = readIdentity(Number(orphan.pid))
  const other = readIdentity(Number(stranger.pid))
  if (identity === undefined || other === undefined) throw new Error('the processes did not start')
  await writeFile(join(folder, 'run/process.json'), JSON.stringify({ ...other, startTicks: '1' }))
  await (await startStore(t, folder)).stop()
  t.ok(isAlive(other))
  await writeFile(join(folder, 'run/process.json'), JSON.stringify(identity))
  const ended = once(orphan, 'exit')
  await (await startStore(t, folder)).stop()
  await ended
  t.notOk(isAlive(identity))
})

t.test('it ends when the server is killed', async (t) => {
  const folder = join(await temporaryFolder(t), 'registry')
  const server = spawn(process.execPath, [PROGRAM, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { server.kill('SIGKILL') })
  const [said] = await once(server.stdout, 'data')
  t.equal(String(said), 'up\n')
  const identity = JSON.parse(await readFile(join(folder, 'run/process.json'), 'utf8'))
  t.ok(isAlive(identity))
  server.kill('SIGKILL')
  await eventually('the store has ended', () => !isAlive(identity))
})

t.test('two stores do not disturb each other, and a start can be given up', async (t) => {
  const folder = join(await temporaryFolder(t), 'registry')
  const store = await startStore(t, folder)
  const second = new Store({ folder: join(await temporaryFolder(t), 'x'), log, commands, processes })
  await second.start(new AbortController().signal)
  await second.stop()
  t.ok(store.socketPath(), 'another store is not disturbed')
  const aborted = new Store({ folder: join(await temporaryFolder(t), 'y'), log, commands, processes })
  await t.rejects(aborted.start(AbortSignal.abort(new Error('stopping'))), { message: 'stopping' })
  await aborted.stop()
})
