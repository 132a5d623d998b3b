// A server whose optional plugins are turned off: each page says what is not there, or shows what it has without them, and waits for nothing.
import t, { type Test } from 'tap'
import { withoutDeleted } from '../../../../setup/structure/deleted.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { look } from './look.ts'
import { cannot, idOf, logIn, startOperator } from './operator.ts'

const OFF = ['builds', 'devices', 'egress', 'resources', 'snapshots', 'volumes', 'webhooks'] as const
const PAGES: Readonly<Record<string, string | RegExp>> = {
  instances: 'subject', egress: 'This server has no mediated way out.', family: 'subject', images: 'console/shell', builds: 'This server has no builds.', snapshots: 'This server has no snapshots.',
  volumes: 'This server has no volumes.', devices: 'This server has no devices.', ingresses: 'This server has no ingress.', webhooks: 'This server has no webhooks.', host: 'This server has no account of what is taken.'
}
const SIDES: Readonly<Record<string, string>> = { overview: 'Image', snapshots: 'This server has no snapshots.', egress: 'This server has no mediated way out.' }
const reason = cannot()

if (reason === false) await t.test('an operator of a server without most plugins', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t, withoutDeleted(Object.fromEntries(OFF.map((id) => [id, { enabled: false }]))))
  await createShell(operator.server, operator.image, 'sleep 100000', { name: 'subject' })
  await waitFor(operator.server, 'subject', 'Running')
  await logIn(operator)
  const id = await idOf(operator, 'subject')
  for (const [place, shown] of Object.entries(PAGES)) await t.test(place, async (t) => { await look(t, operator, { place, name: `off-${place}`, shown, absent: true }) })
  for (const [side, shown] of Object.entries(SIDES)) await t.test(`${side} of an instance`, async (t) => { await look(t, operator, { place: `instances/${id}/${side}`, name: `off-instance-${side}`, shown, absent: true }) })
}
