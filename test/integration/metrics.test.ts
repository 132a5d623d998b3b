// All metrics of a server with every plugin: their names and labels, and that the dashboard and the alerts in config/ speak of no others.
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { buildApp } from '../../core/app.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { DELETED } from '../../setup/structure/deleted.ts'
import { makeAuthority } from '../core/tls/certificates.ts'
import { freePort } from '../helpers/free-port.ts'
import { expressionsForOperators } from '../helpers/metric-expressions.ts'
import { faultsOf, readMetrics, usableNames } from '../helpers/metric-names.ts'
import { ownNetwork } from '../helpers/own-network.ts'

const ADMIN_KEY = 'an-admin-key-for-this-test'
const headers = { authorization: `Bearer ${ADMIN_KEY}` }
const onPath = (program: string): boolean => (process.env['PATH'] ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

/** The figures of a server, after it was asked for things that are not there, under `names` different names. */
async function figures (t: Test, names: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-metrics-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  const { certificate, key } = await (await makeAuthority(folder)).issue('server')
  const lines: Record<string, unknown>[] = []
  const withIngress = onPath('nginx') && missingPrivileges() === undefined
  const app = await buildApp({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { listen: '127.0.0.1:0' }, tls: { listen: '127.0.0.1:0', certificate, key }, stopInstancesOnExit: true },
    plugins: {
      guest: { config: { prepare: false } },
      'hypervisor-firecracker': { config: { binary: '/no/firecracker' } },
      tracing: { config: { endpoint: 'http://127.0.0.1:9/v1/traces', sample: 0 } },
      ...withIngress ? { networking: { config: { uplink: 'none', ...ownNetwork() } }, ingress: { config: { listen: { http: [await freePort('127.0.0.1')] } } } } : {}
    }
  }, { environment: {}, logStream: { write: line => { lines.push(JSON.parse(line)) } } })
  t.teardown(() => app.stop())
  await app.start()
  for (let index = 0; index < names; index++) {
    for (const path of ['/instances/', '/images/', '/volumes/', '/no/such/', '/']) await app.http.inject({ url: `${path}thing-${index}`, headers })
  }
  const port = lines.find(({ msg }) => msg === 'metrics served')?.['port']
  return await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text()
}

const text = figures(t, 40)

t.test('each name has its unit, and each label values that nobody can make more of', async (t) => {
  const metrics = readMetrics(await text)
  t.ok(metrics.length > (DELETED.length === 0 ? 40 : 20), `${metrics.length} metrics`)
  t.same(metrics.flatMap(faultsOf), [])
  t.notMatch(await text, 'thing-', 'no name from outside is in any label')
})

t.test('the rules see what is wrong', async (t) => {
  const wrong = readMetrics([
    '# TYPE berth_a counter', 'berth_a 1', '# TYPE berth_b_total gauge', 'berth_b_total 1', '# TYPE berth_c_duration_ms gauge', 'berth_c_duration_ms 1',
    '# TYPE berth_d gauge', 'berth_d{instance_name="x"} 1', '# TYPE berth_e_ends_seconds gauge', 'berth_e_ends_seconds 1', '# TYPE berth_f histogram', 'berth_f_bucket{le="1"} 1',
    '# TYPE berth_g gauge', ...Array.from({ length: 400 }, (_, index) => `berth_g{status="${index}"} 1`), '# TYPE other gauge', 'other 1'
  ].join('\n'))
  for (const metric of wrong) t.not(faultsOf(metric).length, 0, metric.name)
  t.same(readMetrics('# TYPE berth_h_timestamp_seconds gauge\nberth_h_timestamp_seconds 1').flatMap(faultsOf), [])
})

/** Whether the plugin of a metric was deleted from this checkout, by the metric's name. */
const wentWithItsPlugin = (name: string): boolean => DELETED.some((plugin) => name === `berth_${plugin}` || name.startsWith(`berth_${plugin}_`))

const skipNetwork = missingPrivileges() ?? (onPath('nginx') ? false : 'there is no nginx, and so no ingress')

t.test('dashboard and alerts speak of metrics that there are', { skip: skipNetwork }, async (t) => {
  const names = usableNames(await text)
  let seen = 0
  for (const [place, expression] of await expressionsForOperators()) {
    for (const [name] of expression.matchAll(/\b(?:berth|process|nodejs)_[a-z0-9_]+/g)) {
      seen++
      t.equal(names.has(name), !wentWithItsPlugin(name), `${place}: ${name}`)
    }
  }
  t.ok(seen > 30)
})
