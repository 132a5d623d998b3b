// Two servers never use one data folder, and a killed one does not keep it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { lockDataFolder } from '../../../core/data/lock.ts'
import { temporaryFolder } from '../bare-app.ts'

const lockModule = new URL('../../../core/data/lock.js', import.meta.url).href

t.test('a folder that is taken is refused, in this process too, and free again after release', async (t) => {
  const folder = await temporaryFolder(t)
  const lock = await lockDataFolder(folder)
  await t.rejects(lockDataFolder(folder), { name: 'DataFolderInUse', message: `the data folder ${folder} is in use by another server (process ${process.pid})` })
  await lock.release()
  await (await lockDataFolder(folder)).release()
})

t.test('the lock of a process that was killed is taken over at once', async (t) => {
  const folder = await temporaryFolder(t)
  const script = `const { lockDataFolder } = await import(${JSON.stringify(lockModule)}); await lockDataFolder(${JSON.stringify(folder)}); console.log('held'); setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  await t.rejects(lockDataFolder(folder), { message: new RegExp(`\\(process ${holder.pid}\\)$`) })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  await (await lockDataFolder(folder)).release()
})

t.test('of many that ask together exactly one gets it', async (t) => {
  const folder = await temporaryFolder(t)
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataFolder(folder)))
  const held = results.flatMap(result => result.status === 'fulfilled' ? [result.value] : [])
  t.equal(held.length, 1)
  await held[0]?.release()
})

t.test('no other user can hold the lock', { skip: process.getuid?.() === 0 ? false : 'becoming another user takes root' }, async (t) => {
  const folder = await temporaryFolder(t)
  await chmod(folder, 0o711)
  const file = join(folder, 'lock.db')
  // as an earlier version left it
  await writeFile(file, '', { mode: 0o644 })
  await (await lockDataFolder(folder)).release()
  t.equal((await stat(file)).mode & 0o777, 0o600)
  const flock = spawnSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', 'flock', '--shared', '--nonblock', file, 'true'])
  t.not(flock.status, 0)
  t.match(flock.stderr.toString(), /denied/i)
})
