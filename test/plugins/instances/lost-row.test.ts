// Rows of what is no instance: a create whose row was stored or not as the database went away, or a delete that was cut off. Its name is free again without a restart.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { fillDisk, smallDisk } from '../../helpers/small-disk.ts'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { startApp, temporaryData } from './app.ts'
import { startAway } from './away.ts'
import { openDatabase } from './database.ts'
import { startWithTemplates } from './templates-app.ts'
import { ScriptedHost } from './scripted.ts'

const BODY = { name: 'web', image: 'test', overlay_size: '32MB' }

t.test('a create whose first commit was done and whose answer was lost is taken back', async (t) => {
  const { call, go } = await startAway(t)
  go('answer lost')
  t.match(await call('POST', '/instances', BODY), { status: 503, body: { code: 'database_unavailable' }, headers: { 'retry-after': '5' } })
  t.equal((await call('GET', '/instances/web')).status, 404)
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('while less of the disk is free than must stay free, a create and a fork make nothing, and what is there can be deleted', { skip: withoutMounts }, async (t) => {
  const disk = await smallDisk(t, 48)
  const { app, call, make, waitFor } = await startApp(t, { dataDir: join(disk, 'data') })
  await make('web')
  await waitFor('web', 'Running')
  await fillDisk(join(disk, 'filler'), 2 ** 20)
  const full = { status: 409, body: { code: 'insufficient_resources', message: /disk of the data folder/ } }
  t.match(await call('POST', '/instances', { ...BODY, name: 'other' }), full)
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), full)
  t.equal((await call('DELETE', '/instances/web')).status, 204)
  await rm(join(disk, 'filler'))
  await make('other')
  await app.stop()
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

/** The next release of an image fails. */
function failRelease (host: ScriptedHost): void {
  const { images: { release } } = host
  host.images.release = async () => {
    host.images.release = release
    throw new Error('no release today')
  }
}

t.test('the image of a create or a fork that failed is released later, when that fails as well', async (t) => {
  const { call, host, make, waitFor } = await startApp(t)
  await make('web')
  await waitFor('web', 'Running')
  host.launchError = new Error('no VM today')
  failRelease(host)
  t.equal((await call('POST', '/instances', { ...BODY, name: 'other' })).status, 500)
  await eventually('the image of the create is released', () => host.held.size === 1, { limitMs: 20_000 })
  await call('POST', '/instances/web/stop')
  failRelease(host)
  t.equal((await call('POST', '/instances/web/fork', { name: 'copy', target_state: 'Running' })).status, 500)
  await eventually('the image of the fork is released', () => host.held.size === 1, { limitMs: 20_000 })
})

t.test('the image of a spare VM that could not become an instance is released later, and its create fails with what kept it', async (t) => {
  const app = await startAway(t, {}, startWithTemplates)
  const { call, host } = app
  await app.make('first')
  await eventually('a spare VM', () => host.vms.length > 2, { limitMs: 20_000 })
  await eventually('it is idle', () => host.vm.state.status === 'paused', { limitMs: 20_000 })
  const { images: { hold } } = host
  host.images.hold = async (digest, holder) => {
    await hold(digest, holder)
    throw InvalidRequest('the hold was done, and its answer lost')
  }
  failRelease(host)
  t.match(await call('POST', '/instances', BODY), { status: 400, body: { message: /its answer lost/ } })
  await eventually('its image is released', () => host.held.size === 1, { limitMs: 20_000 })
})

t.test('an image that nobody holds any more, as the server was killed before its release, is released by the next start', async (t) => {
  const dataDir = join(await temporaryData(t), 'data')
  const host = new ScriptedHost()
  const before = await startApp(t, { dataDir, host })
  const id = await before.make('web')
  await before.app.stop()
  host.held.add('instance:gone')
  host.held.add('snapshot:one')
  await startApp(t, { dataDir, host })
  t.same([...host.held].sort(), [`instance:${id}`, 'snapshot:one'])
})
