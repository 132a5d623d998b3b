// Room on a host as the database goes away: what nobody has any more is free again once it is back.
import t from 'tap'
import { ClaimRepository } from '../../../plugins/resources/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import type { TestApp } from '../instances/app.ts'
import { alive } from '../instances/templates-app.ts'
import { SMALL, startResources, startWithSpares, viewOf } from './app.ts'

const create = async ({ call }: Pick<TestApp, 'call'>, name: string) => await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', ...SMALL })

/** vCPUs and MB of memory and disk that are taken. */
async function taken (app: TestApp): Promise<{ cpu: number, memory: number, overlays: number }> {
  const { cpu, memory, disk_breakdown: { overlays_bytes: overlays } } = await viewOf(app, ADMIN_KEY)
  return { cpu: cpu.allocated, memory: memory.allocated / 2 ** 20, overlays: overlays / 2 ** 20 }
}

const running = (count: number, overlays = count) => ({ cpu: count, memory: count * 128, overlays: overlays * 32 })

for (const call of ['stop', 'standby']) {
  t.test(`room that cannot be given back at the end of a ${call}, as the database is away, is given back later`, async (t) => {
    const app = await startResources(t)
    await create(app, 'web')
    await app.waitFor('web', 'Running')
    failOnce(t, ClaimRepository.prototype, 'rest', { done: false })
    t.equal((await app.call('POST', `/instances/web/${call}`)).status, 200)
    await eventually('nobody has its vCPU', async () => (await taken(app)).cpu === 0, { limitMs: 30_000 })
    t.same(await taken(app), running(0, 1))
  })
}

t.test('room is not given back later of an instance that has a VM again', async (t) => {
  const app = await startResources(t)
  for (const name of ['web', 'other']) {
    await create(app, name)
    await app.waitFor(name, 'Running')
  }
  failOnce(t, ClaimRepository.prototype, 'rest', { done: false })
  t.equal((await app.call('POST', '/instances/web/stop')).status, 200)
  t.equal((await app.call('POST', '/instances/web/start')).status, 200)
  // The other one's turn comes after that of the first.
  failOnce(t, ClaimRepository.prototype, 'rest', { done: false })
  t.equal((await app.call('POST', '/instances/other/stop')).status, 200)
  await eventually('the other one has no vCPU', async () => (await taken(app)).cpu < 2, { limitMs: 30_000 })
  t.same(await taken(app), running(1, 2))
})

t.test('a start whose claim was stored and whose answer was lost takes no room', async (t) => {
  const app = await startResources(t)
  await create(app, 'web')
  await app.waitFor('web', 'Running')
  t.equal((await app.call('POST', '/instances/web/stop')).status, 200)
  failOnce(t, ClaimRepository.prototype, 'claim', { done: true })
  t.ok((await app.call('POST', '/instances/web/start')).status >= 500)
  await eventually('no room is taken', async () => (await taken(app)).cpu === 0, { limitMs: 10_000 })
  t.same(await taken(app), running(0, 1))
  t.equal((await app.call('POST', '/instances/web/start')).status, 200)
  t.same(await taken(app), running(1))
})

t.test('a create whose claim was stored and whose answer was lost takes no room', async (t) => {
  const app = await startResources(t)
  failOnce(t, ClaimRepository.prototype, 'claim', { done: true })
  t.ok((await create(app, 'web')).status >= 500)
  await eventually('no room is taken', async () => (await taken(app)).overlays === 0, { limitMs: 30_000 })
  t.same(await taken(app), running(0))
})

t.test('a spare VM whose claim was stored and whose answer was lost takes no room', async (t) => {
  const app = await startWithSpares(t)
  await app.warmUp(SMALL)
  failOnce(t, ClaimRepository.prototype, 'claim', { done: true })
  t.ok((await create(app, 'second')).status >= 500)
  t.same(await taken(app), running(1))
  t.equal((await create(app, 'third')).status, 201)
  t.same(await taken(app), running(2))
})

t.test('a spare VM whose room cannot be given back ends, and its room is given back later', async (t) => {
  const app = await startWithSpares(t)
  await app.warmUp(SMALL)
  const spare = app.host.vm
  failOnce(t, ClaimRepository.prototype, 'release', { done: false })
  t.match(await create(app, 'first'), { status: 409, body: { code: 'name_conflict' } })
  t.notOk(alive(app).includes(spare))
  await eventually('its room is free', async () => (await taken(app)).cpu === 1, { limitMs: 30_000 })
})
