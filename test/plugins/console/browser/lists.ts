// Each page of the navigation with something on it, part of which somebody hostile has named.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { HOSTILE, HOSTILE_LINE } from './hostile.ts'
import { look } from './look.ts'
import { cannot, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const PAGES: Readonly<Record<string, string | RegExp>> = {
  instances: 'subject', egress: '169.254.169.254', family: 'subject', images: 'console/shell', builds: 'No build yet.', snapshots: 'before', volumes: 'data', devices: /device/i, ingresses: /ingress|turned off/i, keys: HOSTILE_LINE, webhooks: 'hooks.invalid',
  events: 'volume', host: 'Hypervisors', 'host/checks': 'Node.js', 'host/processes': 'registry store', 'host/log': /INFO|DEBUG/, 'host/plugins': 'webhooks'
}
const reason = cannot() || skipWithout('builds', 'devices', 'egress', 'host', 'snapshots', 'volumes')

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
  await t.test('an image from within', async (t) => { await looksIntoImage(t, operator) })
  await t.test('the log of the server, and its processes, as something happens', async (t) => { await follows(t, operator) })
  await t.test('what is deleted elsewhere, in open pages', async (t) => { await forgets(t, operator) })
}

async function forgets (t: Test, operator: Operator): Promise<void> {
  const { server: { api }, page } = operator
  await goTo(operator, 'volumes')
  await api.call('POST', '/volumes', { name: 'short-lived', size_gb: 1 })
  const row = page.getByRole('row', { name: /short-lived/ })
  await row.waitFor(PATIENCE)
  await api.call('DELETE', '/volumes/short-lived')
  await row.waitFor({ state: 'hidden', ...PATIENCE })
  await goTo(operator, `instances/${await idOf(operator, 'subject')}`)
  await page.getByRole('heading', { name: /subject/ }).waitFor(PATIENCE)
  await api.call('DELETE', '/instances/subject')
  await page.getByText(/instance .*does not exist/).waitFor(PATIENCE)
  t.equal(await page.getByRole('heading', { name: /subject/ }).count(), 1, 'what was known of it is still there')
}

interface Processes { readonly processes: ReadonlyArray<{ readonly name: string, readonly pid: number | null }> }

async function follows (t: Test, operator: Operator): Promise<void> {
  const { server: { api }, page } = operator
  const lines = page.getByRole('log', { name: 'Lines' })
  const pidOfStore = async (): Promise<number> => (await api.call('GET', '/host/processes') as Processes).processes.find(({ name }) => name === 'registry store')?.pid ?? 0
  const end = async (): Promise<void> => {
    const pid = await pidOfStore()
    process.kill(pid, 'SIGKILL')
    await eventually('the store is back', async () => ![0, pid].includes(await pidOfStore()))
  }
  await goTo(operator, 'host/log')
  await page.getByLabel('Level').selectOption('error')
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  await end()
  await lines.getByText(/ERROR .*the registry store has ended \(SIGKILL\)/).waitFor(PATIENCE)
  t.equal(await lines.getByText(/INFO/).count(), 0, 'only errors')
  await page.getByLabel('Only lines with').fill('nothing has this')
  await lines.getByText('No line has this.').waitFor()
  await page.getByLabel('Only lines with').fill('')
  await page.getByRole('button', { name: 'Pause' }).click()
  await end()
  await page.getByRole('status').getByText(/^1 line, paused$/).waitFor(PATIENCE)
  await page.getByRole('button', { name: 'Follow' }).click()
  await page.getByRole('status').getByText(/^2 lines$/).waitFor(PATIENCE)
  await page.getByRole('link', { name: 'Processes' }).click()
  const row = page.getByRole('row', { name: /registry store/ })
  await row.getByText(/has ended \(SIGKILL\)/).waitFor(PATIENCE)
  t.match(await row.innerText(), /running[^]*2/)
}

async function looksIntoImage (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await goTo(operator, 'images')
  await page.getByRole('button', { name: /^Details of .*console\/shell/ }).click()
  const dialog = page.locator('dialog')
  await dialog.getByRole('table', { name: 'Layers' }).waitFor(PATIENCE)
  await dialog.getByRole('link', { name: 'subject' }).waitFor(PATIENCE)
  await dialog.getByRole('link', { name: 'before' }).waitFor(PATIENCE)
  t.match(await dialog.innerText(), /On this disk\s+[\d.]+ MiB: one root file system/)
  await look(t, operator, { isOpen: true, name: 'image-details' })
}
