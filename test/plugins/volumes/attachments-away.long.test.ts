// Volumes that come to an instance or go as the database goes away: what is attached is what the instance says, without a restart.
import t from 'tap'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { startWithVolumes, type VolumesApp } from './app.ts'
import { bare, mount, running } from './attached.ts'

async function isFree (app: VolumesApp, volume = 'data'): Promise<void> {
  await eventually(`${volume} is attached to nobody`, async () => (await app.attachments(volume) as unknown[]).length === 0, { limitMs: 30_000 })
}

for (const state of ['Running', 'Stopped'] as const) {
  t.test(`a volume that cannot be given back when it is detached from an instance that is ${state} is given back later`, async (t) => {
    const app = await running(t)
    if (state === 'Stopped') await app.call('POST', '/instances/web/stop')
    failOnce(t, VolumeRepository.prototype, 'detach', { done: false })
    t.ok((await app.call('DELETE', '/instances/web/volumes/data')).status >= 500)
    t.match((await app.call('GET', '/instances/web')).body, { volumes: [] })
    await isFree(app)
    t.equal((await app.call('DELETE', '/volumes/data')).status, 204)
  })
}

t.test('that is so when the instance is deleted meanwhile', async (t) => {
  const app = await running(t)
  failOnce(t, VolumeRepository.prototype, 'detach', { done: false })
  t.ok((await app.call('DELETE', '/instances/web/volumes/data')).status >= 500)
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
  await isFree(app)
})

t.test('a volume that was attached again meanwhile is not given back', async (t) => {
  const app = await running(t)
  await app.makeVolume('other', { id: 'other' })
  t.equal((await app.call('POST', '/instances/web/volumes/other', { mount_path: '/other' })).status, 200)
  failOnce(t, VolumeRepository.prototype, 'detach', { done: true })
  t.ok((await app.call('DELETE', '/instances/web/volumes/data')).status >= 500)
  t.equal((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status, 200)
  // The other one's turn comes after that of the first.
  failOnce(t, VolumeRepository.prototype, 'detach', { done: false })
  t.ok((await app.call('DELETE', '/instances/web/volumes/other')).status >= 500)
  await isFree(app, 'other')
  t.match(await app.attachments('data'), [{ instance_id: app.id }])
})

t.test('an attachment that was stored and whose answer was lost is taken back later', async (t) => {
  const app = await bare(t)
  failOnce(t, VolumeRepository.prototype, 'attach', { done: true })
  t.ok((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status >= 500)
  t.match((await app.call('GET', '/instances/web')).body, { volumes: [] })
  await isFree(app)
  t.equal((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status, 200)
})

t.test('an attachment that fails and cannot be taken back at that moment is taken back later', async (t) => {
  const app = await bare(t)
  const attach = Reflect.get(VolumeRepository.prototype, 'attach')
  t.teardown(() => { VolumeRepository.prototype.attach = attach })
  VolumeRepository.prototype.attach = async function (...args) {
    await attach.apply(this, args)
    failOnce(t, VolumeRepository.prototype, 'alike', { done: false })
    failOnce(t, VolumeRepository.prototype, 'detach', { done: false })
  }
  t.ok((await app.call('POST', '/instances/web/volumes/data', { mount_path: '/data' })).status >= 500)
  await isFree(app)
})

t.test('a create whose volumes were attached and whose answer was lost gives them back', async (t) => {
  const app = await startWithVolumes(t)
  await app.makeVolume('data', { id: 'data' })
  failOnce(t, VolumeRepository.prototype, 'attach', { done: true })
  t.ok((await app.call('POST', '/instances', { name: 'web', image: 'test', overlay_size: '32MB', volumes: [mount('data')] })).status >= 500)
  await isFree(app)
})
