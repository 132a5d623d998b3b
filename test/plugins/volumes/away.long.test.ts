// A create of a volume that fails as the database goes away: it is no volume, and its id and name are free again without a restart. And a delete that fails: it goes on.
import t from 'tap'
import { VolumeFiles } from '../../../plugins/volumes/files.ts'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { EMPTY, startWithVolumes } from './app.ts'

const BODY = { id: 'one', name: 'data', size_gb: 1 }
const gone = (): Error => Object.assign(new Error('Connection lost'), { fatal: true })

t.test('a create whose row was stored and whose answer was lost is taken back', async (t) => {
  const app = await startWithVolumes(t)
  const real = Reflect.get(VolumeRepository.prototype, 'insert')
  VolumeRepository.prototype.insert = async function (...args) {
    VolumeRepository.prototype.insert = real
    await real.apply(this, args)
    throw gone()
  }
  t.ok((await app.call('POST', '/volumes', BODY)).status >= 500)
  t.equal((await app.call('GET', '/volumes/data')).status, 404)
  await eventually('its name is free', async () => (await app.call('POST', '/volumes', BODY)).status === 201, { limitMs: 30_000 })
  t.equal((await app.call('GET', '/volumes/data')).status, 200)
})

t.test('a create that cannot be taken back at first is taken back later', async (t) => {
  const app = await startWithVolumes(t)
  const { complete, giveUp } = { complete: Reflect.get(VolumeRepository.prototype, 'complete'), giveUp: Reflect.get(VolumeRepository.prototype, 'giveUp') }
  VolumeRepository.prototype.complete = async () => { throw gone() }
  VolumeRepository.prototype.giveUp = async () => {
    VolumeRepository.prototype.giveUp = giveUp
    throw gone()
  }
  t.ok((await app.call('POST', '/volumes', BODY)).status >= 500)
  VolumeRepository.prototype.complete = complete
  await eventually('its id is free', async () => (await app.call('POST', '/volumes', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('a create that fails takes nothing of a volume that has its id', async (t) => {
  const app = await startWithVolumes(t)
  t.equal((await app.call('POST', '/volumes', BODY)).status, 201)
  const real = Reflect.get(VolumeRepository.prototype, 'insert')
  const isLeft = Reflect.get(VolumeRepository.prototype, 'isLeft')
  let isLookedFor = false
  t.teardown(() => { VolumeRepository.prototype.isLeft = isLeft })
  VolumeRepository.prototype.insert = async () => {
    VolumeRepository.prototype.insert = real
    throw gone()
  }
  VolumeRepository.prototype.isLeft = async function (...args) {
    const answer = await isLeft.apply(this, args)
    isLookedFor = true
    return answer
  }
  t.ok((await app.call('POST', '/volumes', BODY)).status >= 500)
  await eventually('the row was looked for', () => isLookedFor, { limitMs: 30_000 })
  t.equal((await app.call('GET', '/volumes/data')).status, 200)
})

t.test('a delete whose disk cannot be removed at that moment removes it later, and its id is free', async (t) => {
  const app = await startWithVolumes(t)
  await app.call('POST', '/volumes', BODY)
  failOnce(t, VolumeFiles.prototype, 'remove', { done: false })
  t.ok((await app.call('DELETE', '/volumes/one')).status >= 500)
  t.equal((await app.call('GET', '/volumes/one')).status, 404)
  t.equal((await app.call('POST', '/volumes', BODY)).status, 409)
  await eventually('its disk is gone', async () => (await app.files()).join() === EMPTY.join(), { limitMs: 30_000 })
  await eventually('its id is free', async () => (await app.call('POST', '/volumes', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('a delete that was stored and whose answer was lost goes on later', async (t) => {
  const app = await startWithVolumes(t)
  await app.call('POST', '/volumes', BODY)
  failOnce(t, VolumeRepository.prototype, 'beginDelete', { done: true })
  t.ok((await app.call('DELETE', '/volumes/one')).status >= 500)
  await eventually('its disk is gone', async () => (await app.files()).join() === EMPTY.join(), { limitMs: 30_000 })
})

t.test('a delete that is tried again takes nothing of the next volume of that id', async (t) => {
  const app = await startWithVolumes(t)
  await app.call('POST', '/volumes', BODY)
  failOnce(t, VolumeRepository.prototype, 'giveUp', { done: true })
  t.ok((await app.call('DELETE', '/volumes/one')).status >= 500)
  t.equal((await app.call('POST', '/volumes', BODY)).status, 201)
  const real = Reflect.get(VolumeRepository.prototype, 'isLeft')
  t.teardown(() => { VolumeRepository.prototype.isLeft = real })
  let isTriedAgain = false
  VolumeRepository.prototype.isLeft = async function (...args) {
    const isLeft = await real.apply(this, args)
    isTriedAgain = true
    return isLeft
  }
  await eventually('it is tried again', () => isTriedAgain, { limitMs: 30_000 })
  t.equal((await app.call('GET', '/volumes/one')).status, 200)
  t.same(await app.files(), ['disks', 'disks/one.img', 'unpacking', 'uses'])
})

t.test('a disk that cannot be removed does not keep the server from its start', async (t) => {
  const before = await startWithVolumes(t)
  await before.call('POST', '/volumes', BODY)
  failOnce(t, VolumeFiles.prototype, 'remove', { done: false })
  t.ok((await before.call('DELETE', '/volumes/one')).status >= 500)
  await before.app.stop()
  failOnce(t, VolumeFiles.prototype, 'remove', { done: false })
  const app = await startWithVolumes(t, { dataDir: before.dataDir })
  t.same(await app.files(), ['disks', 'disks/one.img', 'unpacking', 'uses'])
  await eventually('its disk is gone', async () => (await app.files()).join() === EMPTY.join(), { limitMs: 30_000 })
})

t.test('a failed create whose disk cannot be removed at that moment leaves none behind', async (t) => {
  const app = await startWithVolumes(t)
  failOnce(t, VolumeRepository.prototype, 'complete', { done: false })
  failOnce(t, VolumeFiles.prototype, 'remove', { done: false })
  t.ok((await app.call('POST', '/volumes', BODY)).status >= 500)
  await eventually('its disk is gone', async () => (await app.files()).join() === EMPTY.join(), { limitMs: 30_000 })
})
