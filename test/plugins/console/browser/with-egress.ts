// The way out of real VMs to a real origin over TLS, as an operator sees it: who called, what was decided, whose credential went in. The README's pictures are made of it:
// BERTH_PICTURES names the folder, which `npm run pictures` does with the one where they are kept.
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../../core/package-root.ts'
import { accessibilityFaults, openPage, type Page } from '../../../helpers/browser.ts'
import { API, OTHER } from '../../../integration/egress-enforcement/far/contract.ts'
import { addGuest, fetchFrom, mediated, SECRET, setScene, type Scene } from '../../../integration/egress-enforcement/scene.ts'
import { cannot, goTo, logIn, PATIENCE } from './operator.ts'

const FOLDER = process.env['BERTH_PICTURES']
const reason = cannot()

if (reason === false) await t.test('an operator sees who called out with whose credential', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const scene = await setScene(t)
  const { server } = scene
  await call(scene)
  for (const [name, step] of [['queue', 'standby'], ['batch', 'stop']] as const) {
    await addGuest(scene, name, mediated('none'))
    await server.api.call('POST', `/instances/${name}/${step}`)
  }
  const { page, complaints } = await openPage(t)
  await logIn({ server, page })
  await page.getByRole('link', { name: 'batch' }).waitFor(PATIENCE)
  // A few figures for the small graphs, which come every three seconds.
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 10_000))')
  await picture(page, 'instances')
  await goTo({ server, page }, 'egress')
  await page.getByText('API_KEY').first().waitFor(PATIENCE)
  const table = await page.locator('main table').innerText()
  t.match(table, new RegExp(`let through\\s+GET ${API.host}/v1/models\\s+\\d+\\s+API_KEY`))
  t.match(table, /refused: metadata refused/)
  t.notOk((await page.evaluate<string>('document.documentElement.outerHTML')).includes(SECRET))
  t.same(await accessibilityFaults(page), [])
  await picture(page, 'egress')
  t.same(complaints, [])
}

/** What a guest would ask for that means well, and one that does not. */
async function call (scene: Scene): Promise<void> {
  const assistant = await addGuest(scene, 'assistant', mediated('all'))
  const crawler = await addGuest(scene, 'crawler', mediated('http_https_only', null))
  for (const path of ['/v1/models', '/v1/responses', '/v1/models']) await fetchFrom(assistant, `https://${API.host}${path}`)
  await fetchFrom(assistant, `https://${OTHER.host}/`)
  await fetchFrom(crawler, `https://${OTHER.host}/robots.txt`)
  await fetchFrom(crawler, 'http://169.254.169.254/latest/meta-data/iam/')
  await fetchFrom(crawler, 'https://192.168.0.1/admin')
}

async function picture (page: Page, name: string): Promise<void> {
  if (FOLDER === undefined) return
  await page.setViewportSize({ width: 1600, height: 440 })
  await page.screenshot({ path: join(packageRoot, FOLDER, `${name}.png`) })
}
