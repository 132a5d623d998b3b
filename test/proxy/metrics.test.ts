import t from 'tap'
import { faultsOf, readMetrics } from '../helpers/metric-names.ts'
import { loopback } from './helpers/network.ts'
import { vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

t.test('each metric of the proxy itself has its unit in its name, and labels that no guest can make more of', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(loopback(10), [{}]))
  const metrics = readMetrics((await stage.proxy.call('GET', '/metrics')).body)
  t.ok(metrics.length > 20, `${metrics.length} metrics`)
  t.same(metrics.flatMap(faultsOf), [])
})
