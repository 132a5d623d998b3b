// A create of a volume that fails as the database goes away: it is no volume, and its id and name are free again without a restart.
import t from 'tap'
import { VolumeRepository } from '../../../plugins/volumes/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startWithVolumes } from './app.ts'

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
  const giveUp = Reflect.get(VolumeRepository.prototype, 'giveUp')
  let isGivenUp = false
  t.teardown(() => { VolumeRepository.prototype.giveUp = giveUp })
  VolumeRepository.prototype.insert = async () => {
    VolumeRepository.prototype.insert = real
    throw gone()
  }
  VolumeRepository.prototype.giveUp = async function (...args) {
    await giveUp.apply(this, args)
    isGivenUp = true
  }
  t.ok((await app.call('POST', '/volumes', BODY)).status >= 500)
  await eventually('the row was looked for', () => isGivenUp)
  t.equal((await app.call('GET', '/volumes/data')).status, 200)
})
