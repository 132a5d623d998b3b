// Ports of instances that work for another plugin are not published.
import t from 'tap'
import { plugin as ports } from '../../../plugins/ports/index.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { refused, request, startWithWorkers } from '../instances/workers-app.ts'

t.test('nobody publishes a port of an instance that works for another plugin', async (t) => {
  const host = new ScriptedHost()
  host.connect()
  const app = await startWithWorkers(t, { host, plugins: [ports] })
  const { id } = await app.workers.create(request())
  await app.waitFor(id, 'Running')
  t.match(await app.call('POST', `/instances/${id}/ports`, { instance_port: 80 }), refused)
  t.same((await app.call('GET', '/ports')).text, '[]')
})
