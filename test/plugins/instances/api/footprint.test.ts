// What an instance costs the host, and how much of that is its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import t from 'tap'
import { bootId, readIdentity } from '../../../../core/process/identity.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { pathsAt } from '../../../../plugins/instances/folder/paths.ts'
import { footprintOf, parseRollup } from '../../../../plugins/instances/api/footprint.ts'
import { testFolder } from '../../../helpers/folder.ts'
import { startApp } from '../app.ts'

const KIB = 1024
const commands = createHostCommands()

await t.test('the figures of the kernel are taken as they are', async (t) => {
  const rollup = '55d0-7ffc ---p 00000000 00:00 0                          [rollup]\nRss:                1000 kB\nPss:                 600 kB\nPss_Dirty:           300 kB\nShared_Clean:        500 kB\nShared_Dirty:         20 kB\nPrivate_Clean:        80 kB\nPrivate_Dirty:       400 kB\n'
  t.same(parseRollup(rollup), { resident_bytes: 1000 * KIB, proportional_bytes: 600 * KIB, own_bytes: 480 * KIB, shared_bytes: 520 * KIB })
  t.same(parseRollup('nothing'), { resident_bytes: 0, proportional_bytes: 0, own_bytes: 0, shared_bytes: 0 })
})

await t.test('a process that runs has memory, and files are counted by what they are', async (t) => {
  const paths = pathsAt(testFolder(t))
  for (const [path, kib] of [[paths.overlay, 64], [`${paths.volumes}/v.ext4`, 32], [paths.memory, 128], [`${paths.image.whole}/state`, 16], [paths.output, 8]] as const) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, Buffer.alloc(kib * KIB, 1))
  }
  const sparse = await open(paths.overlay, 'r+')
  await sparse.truncate(2 ** 30)
  await sparse.close()
  const sleeper = spawn('sleep', ['600'])
  t.teardown(() => sleeper.kill())
  await once(sleeper, 'spawn')
  const pid = Number(sleeper.pid)
  const whole = await footprintOf('x', readIdentity(pid), paths, commands)
  t.match(whole, { instance_id: 'x', disk: { total_bytes: 248 * KIB, writable_disk_bytes: 96 * KIB, memory_bytes: 144 * KIB, other_bytes: 8 * KIB, shared_bytes: 0, own_bytes: 248 * KIB } })
  const { memory } = whole
  t.ok(Number(memory?.proportional_bytes) > 0 && Number(memory?.proportional_bytes) <= Number(memory?.resident_bytes))
  t.equal(Number(memory?.own_bytes) + Number(memory?.shared_bytes), memory?.resident_bytes)
  t.match(await footprintOf('x', { pid, startTicks: '1', bootId: bootId() }, paths, commands), { memory: null, memory_reason: 'its VM has ended' }, 'another process of that number is not its VM')
  t.match(await footprintOf('x', { pid: 2 ** 30, startTicks: '1', bootId: bootId() }, paths, commands), { memory: null, memory_reason: 'its VM has ended' })
})

await t.test('any instance can be asked for', async (t) => {
  const { call, make } = await startApp(t)
  const id = await make('web')
  await call('POST', '/instances/web/stop')
  const { status, body } = await call('GET', '/instances/web/footprint')
  t.equal(status, 200)
  t.match(body, { instance_id: id, memory: null, memory_reason: 'it has no VM', disk: { shared_bytes: 0 } })
  t.ok(Object(body['disk']).writable_disk_bytes > 0)
  t.match(await call('GET', '/instances/none/footprint'), { status: 404, body: { code: 'not_found' } })
})
