// Each page of the navigation with something on it, part of which somebody hostile has named.
import t, { type Test } from 'tap'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { HOSTILE, HOSTILE_LINE } from './hostile.ts'
import { look } from './look.ts'
import { cannot, logIn, startOperator } from './operator.ts'

const PAGES: Readonly<Record<string, string | RegExp>> = {
  instances: 'subject', egress: '169.254.169.254', family: 'subject', images: 'console/shell', builds: 'No build yet.', snapshots: 'before', volumes: 'data', devices: /device/i, ingresses: /ingress|turned off/i, keys: HOSTILE_LINE, webhooks: 'hooks.invalid',
  events: 'volume', host: 'Hypervisors'
}
const reason = cannot()

if (reason === false) await t.test('an operator looks at every page', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t, { resources: { config: {} } })
  const { server: { api }, image } = operator
  await createShell(operator.server, image, `wget -q -O- -U '${HOSTILE_LINE}' 'http://169.254.169.254/${HOSTILE[1]}'; wget -q -O- 'http://169.254.169.254/secrets'; sleep 100000`, { name: 'subject', tags: { team: 'storage' }, network: { enabled: true, egress: { enabled: true } } })
  await waitFor(operator.server, 'subject', 'Running')
  await api.call('POST', '/instances/subject/snapshots', { kind: 'Standby', name: 'before' })
  await api.call('POST', '/keys', { name: HOSTILE_LINE, scopes: ['instance:read'] })
  await api.call('POST', '/webhooks', { url: `http://hooks.invalid/?q=${HOSTILE_LINE}`, enabled: false })
  await logIn(operator)
  // Events are those since the page was opened.
  await api.call('POST', '/volumes', { name: 'data', size_gb: 1 })
  for (const [place, shown] of Object.entries(PAGES)) await t.test(place, async (t) => { await look(t, operator, { place, shown }) })
}
