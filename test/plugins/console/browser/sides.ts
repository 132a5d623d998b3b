// Each side of an instance whose program is hostile: what it prints, names its files and asks of other hosts stays text.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import type { Page } from '../../../helpers/browser.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { HOSTILE, HOSTILE_LINE } from './hostile.ts'
import { look } from './look.ts'
import { cannot, idOf, logIn, startOperator } from './operator.ts'

const SIDES: Readonly<Record<string, string | RegExp>> = {
  overview: 'Image', logs: HOSTILE_LINE, terminal: 'Open a terminal', files: HOSTILE[0], snapshots: 'before', egress: '169.254.169.254', events: /instance/i, code: HOSTILE[0]
}
const reason = cannot() || skipWithout('egress', 'snapshots')

if (reason === false) await t.test('an operator looks at every side of an instance', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  const { server: { api }, image } = operator
  const files = HOSTILE.map((text) => `: > '/tmp/odd/${text.replaceAll('/', '')}'`).join('; ')
  await createShell(operator.server, image, `mkdir /tmp/odd; ${files}; echo '${HOSTILE_LINE}'; wget -q -O- 'http://169.254.169.254/${HOSTILE[1]}'; wget -q -O- 'http://169.254.169.254/secrets'; sleep 100000`, { name: 'subject', env: { HOSTILE: HOSTILE_LINE }, network: { enabled: true, egress: { enabled: true } } })
  await waitFor(operator.server, 'subject', 'Running')
  await api.call('POST', '/instances/subject/snapshots', { kind: 'Standby', name: 'before' })
  await logIn(operator)
  const id = await idOf(operator, 'subject')
  for (const [side, shown] of Object.entries(SIDES)) await t.test(side, async (t) => { await look(t, operator, { place: `instances/${id}/${side}`, name: `instance-${side}`, shown, ...side === 'files' ? { act: openFolder } : {} }) })
}

async function openFolder (page: Page): Promise<void> {
  await page.getByLabel(/^Folder/).fill('/tmp/odd')
  await page.getByRole('button', { name: 'Look', exact: true }).click()
}
