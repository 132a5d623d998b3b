// VMs that are kept in standby, and room on the host.
import t from 'tap'
import { startResources, TEN } from '../../resources/app.ts'
import { until } from '../crash.ts'
import { ON, restored, runningIn } from './kept-app.ts'

t.test('what is kept has no claim to room: it counts as free, and goes when somebody needs it', async (t) => {
  const web = await runningIn(await startResources(t, { ...TEN, capacity: { ...TEN.capacity, memory: '512MB' } }, { config: ON }))
  await web.call('POST', '/instances/web/standby')
  const kept = web.host.vm
  await until(async () => JSON.stringify((await web.call('GET', '/resources')).body).includes('"allocated":0'))
  t.match((await web.call('GET', '/resources')).body, { memory: { allocated: 0 }, kept: { vms: 1, memory_bytes: 2 ** 28 } })
  await web.make('small', { size: '256MB' })
  t.equal(kept.state.status, 'paused', 'there is room for both')
  await web.make('other', { size: '128MB' })
  t.equal(kept.state.status, 'gone')
  t.match((await web.call('GET', '/resources')).body, { memory: { allocated: 3 * 2 ** 27 }, kept: { vms: 0, memory_bytes: 0 } })
  t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'insufficient_resources', message: /memory/ } })
  t.match((await web.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  await web.call('DELETE', '/instances/other')
  await restored(t, web)
})

t.test('a restore that is refused for lack of room leaves the image as it was, though the VM is still there', async (t) => {
  const web = await runningIn(await startResources(t, { ...TEN, capacity: { ...TEN.capacity, cpu: 2 } }, { config: ON }), { vcpus: 1 })
  await web.call('POST', '/instances/web/standby')
  await web.make('greedy', { size: '128MB', vcpus: 2 })
  t.equal(web.host.vms[0]?.state.status, 'paused')
  t.match(await web.call('POST', '/instances/web/restore'), { status: 409, body: { code: 'insufficient_resources', message: /cpu/ } })
  t.match((await web.call('GET', '/instances/web')).body, { state: 'Standby', has_snapshot: true })
  t.equal(web.host.vms[0]?.state.status, 'gone')
  await web.call('DELETE', '/instances/greedy')
  await restored(t, web)
  t.match(web.host.vm.restoredFrom, { state: 'state of a guest asleep' })
})
