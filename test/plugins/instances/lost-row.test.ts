// Rows of what is no instance: a create whose row was stored or not as the database went away, or a delete that was cut off. Its name is free again without a restart.
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { startApp, temporaryData } from './app.ts'
import { startAway } from './away.ts'
import { openDatabase } from './database.ts'
import { ScriptedHost } from './scripted.ts'

const BODY = { name: 'web', image: 'test', overlay_size: '32MB' }

t.test('a create whose first commit was done and whose answer was lost is taken back', async (t) => {
  const { call, go } = await startAway(t)
  go('answer lost')
  t.match(await call('POST', '/instances', BODY), { status: 503, body: { code: 'database_unavailable' }, headers: { 'retry-after': '5' } })
  t.equal((await call('GET', '/instances/web')).status, 404)
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('a create that cannot be taken back, as the database is away, is taken back later', async (t) => {
  const { call, go, host } = await startAway(t)
  host.launchError = new Error('no VM today')
  go('done', 'not done', 'not done')
  t.equal((await call('POST', '/instances', BODY)).status, 500)
  host.launchError = undefined
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('what is left of an instance and cannot be removed as the server starts is removed later', async (t) => {
  const dataDir = join(await temporaryData(t), 'data')
  const host = new ScriptedHost()
  const before = await startApp(t, { dataDir, host })
  const id = await before.make('web')
  await before.waitFor('web', 'Running')
  await before.app.stop()
  const database = await openDatabase(dataDir)
  t.teardown(async () => { await database.destroy() })
  await database('instances_instances').where({ id }).update({ status: 'deleting' })

  await database.raw("create trigger kept before delete on instances_instances begin select raise(fail, 'not today'); end")
  const { call } = await startApp(t, { dataDir, host })
  t.equal((await call('GET', '/instances/web')).status, 404)
  t.same(await database('instances_instances').where({ id }).select('status'), [{ status: 'deleting' }])
  await database.raw('drop trigger kept')
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})
