// Room on a host as the database goes away: what nobody has any more is free again once it is back.
import t from 'tap'
import { ClaimRepository } from '../../../plugins/resources/repository.ts'
import { eventually } from '../../helpers/eventually.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import type { TestApp } from '../instances/app.ts'
import { SMALL, startResources, viewOf } from './app.ts'

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
