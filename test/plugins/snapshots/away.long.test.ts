// Deletes and creates of snapshots that fail as the database or the disk goes away: what they left is put in order without a restart.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { SnapshotFiles } from '../../../plugins/snapshots/files.ts'
import { SnapshotRepository } from '../../../plugins/snapshots/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { openDatabase } from '../instances/database.ts'
import { startWithSnapshots, type SnapshotsApp } from './app.ts'

const BODY = { kind: 'Stopped', name: 'nightly' }

async function withStopped (t: Test): Promise<SnapshotsApp> {
  const app = await startWithSnapshots(t)
  await app.make('web')
  await app.waitFor('web', 'Running')
  await app.call('POST', '/instances/web/stop')
  return app
}

async function status (app: SnapshotsApp, method: 'GET' | 'DELETE', id: string): Promise<number> {
  return (await app.call(method, `/snapshots/${id}`)).status
}

for (const [how, fail] of Object.entries<(t: Test) => void>({
  'whose files cannot be removed at that moment': (t) => { failOnce(t, SnapshotFiles.prototype, 'remove', { done: false }) },
  'whose row cannot be removed at that moment': (t) => { failOnce(t, SnapshotRepository.prototype, 'remove', { done: false }) },
  'that was stored and whose answer was lost': (t) => { failOnce(t, SnapshotRepository.prototype, 'beginDelete', { done: true }) }
})) {
  t.test(`a delete ${how} is finished later`, async (t) => {
    const app = await withStopped(t)
    const id = await app.take('web', 'Stopped', { name: 'nightly' })
    fail(t)
    t.ok(await status(app, 'DELETE', id) >= 500)
    t.equal(await status(app, 'GET', id), 404)
    const database = await openDatabase(app.dataDir)
    t.teardown(async () => { await database.destroy() })
    await eventually('nothing is left of it', async () => {
      const rows: unknown[] = await database('snapshots_snapshots')
      return rows.length === 0 && !existsSync(app.folder(id)) && !app.host.held.has(`snapshot:${id}`)
    }, { limitMs: 30_000 })
  })
}

t.test('a delete that was not stored deletes nothing, then or later', async (t) => {
  const app = await withStopped(t)
  const id = await app.take('web', 'Stopped')
  failOnce(t, SnapshotRepository.prototype, 'beginDelete', { done: false })
  let looks = 0
  const settled = Reflect.get(SnapshotRepository.prototype, 'settled')
  t.teardown(() => { SnapshotRepository.prototype.settled = settled })
  SnapshotRepository.prototype.settled = async function (...args) {
    const record = await settled.apply(this, args)
    looks++
    return record
  }
  t.ok(await status(app, 'DELETE', id) >= 500)
  await eventually('its row was looked at', () => looks > 0, { limitMs: 30_000 })
  t.equal(await status(app, 'GET', id), 200)
  t.ok(existsSync(app.folder(id)))
  t.equal(await status(app, 'DELETE', id), 204)
})

t.test('a create that can be neither stored nor given up is given up later, unless it was stored', async (t) => {
  for (const done of [true, false]) {
    const app = await withStopped(t)
    failOnce(t, SnapshotRepository.prototype, 'complete', { done })
    failOnce(t, SnapshotRepository.prototype, 'abandon', { done: false })
    t.ok((await app.call('POST', '/instances/web/snapshots', BODY)).status >= 500)
    if (done) {
      t.match(await app.call('GET', '/snapshots'), { status: 200, body: [{ name: 'nightly' }] })
      continue
    }
    await eventually('its name is free', async () => (await app.call('POST', '/instances/web/snapshots', BODY)).status === 201, { limitMs: 30_000 })
  }
})

for (const [how, done, state] of [['cannot be stored, nor that it failed, has failed', false, 'error'], ['was stored and the answer lost is whole', true, 'compressed']] as const) {
  t.test(`a compression whose end ${how} once the database is back, and one memory is left`, async (t) => {
    const app = await startWithSnapshots(t)
    await app.make('web')
    await app.waitFor('web', 'Running')
    failOnce(t, SnapshotRepository.prototype, 'setCompressed', { done })
    failOnce(t, SnapshotRepository.prototype, 'setCompressionError', { done: false })
    const id = await app.take('web', 'Standby', { compression: { enabled: true } })
    await eventually('it says so', async () => (await app.call('GET', `/snapshots/${id}`)).body['compression_state'] === state, { limitMs: 30_000 })
    const memories = async (): Promise<string> => (await readdir(app.folder(id))).filter((name) => name.startsWith('memory')).join()
    await eventually('the other is gone', async () => await memories() === (done ? 'memory.tar.zst' : 'memory'), { limitMs: 30_000, explain: memories })
    t.equal(await status(app, 'DELETE', id), 204)
  })
}
