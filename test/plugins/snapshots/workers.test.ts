// Instances that work for another plugin are not copied.
import t from 'tap'
import { systemClock } from '../../../plugins/snapshots/clock.ts'
import { snapshotsPlugin } from '../../../plugins/snapshots/index.ts'
import { refused, request, startWithWorkers } from '../instances/workers-app.ts'

t.test('nobody takes a snapshot of an instance that works for another plugin, or makes it a schedule', async (t) => {
  const app = await startWithWorkers(t, { plugins: [snapshotsPlugin(systemClock)] })
  const { id } = await app.workers.create(request())
  await app.waitFor(id, 'Running')
  t.match(await app.call('POST', `/instances/${id}/snapshots`, { kind: 'Standby' }), refused)
  t.match(await app.call('POST', `/instances/${id}/snapshots`, { kind: 'Stopped' }), refused)
  t.same((await app.call('GET', '/snapshots')).text, '[]')
  t.match(await app.call('PUT', `/instances/${id}/snapshot-schedule`, { interval: '1h', retention: { max_count: 1 } }), refused)
  t.equal((await app.call('GET', `/instances/${id}/snapshot-schedule`)).status, 404)
})
