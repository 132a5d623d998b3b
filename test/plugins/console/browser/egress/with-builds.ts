// An image is built from a folder of the reader's, also while the server is killed and comes back.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually } from '../../../../helpers/eventually.ts'
import { testFolder } from '../../../../helpers/folder.ts'
import { BUILDER, pushBuilder } from '../../../../integration/builds/egress-images.ts'
import { look } from '../look.ts'
import { cannot, giveKey, goTo, logIn, PATIENCE, startOperator, type Operator } from '../operator.ts'

const LONG = { limitMs: 500_000, pollMs: 500 }
const DEEP = 'folder/'.repeat(16)
const reason = cannot()

if (reason === false) await t.test('an operator builds an image', { timeout: 1_200_000 }, work)
else t.plan(0, reason)

interface Build { readonly id: string, readonly status: string }

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t, { builds: { config: { builderImage: BUILDER, concurrency: 1, memory: '1GB', disk: '4GB', builderDisk: '4GB' } } })
  const folder = testFolder(t, { Dockerfile: `FROM console/shell\nCOPY . /built\nRUN echo "it says $(cat /built/${DEEP}words)"; sleep 5\n` })
  await mkdir(join(folder, DEEP), { recursive: true })
  await writeFile(join(folder, DEEP, 'words'), 'hello from the folder')
  await pushBuilder(operator.server)
  await logIn(operator)
  await begin(operator, folder)
  const log = operator.page.locator('dialog pre.output')
  await eventually('the first step is in its log', async () => /STEP|FROM/.test(await log.innerText()), { ...LONG, explain: async () => await log.innerText() })
  await t.test('whose server is killed meanwhile', async (t) => { await outlives(t, operator) })
  await t.test('to its end, with its log', async (t) => { await ends(t, operator, folder) })
}

async function begin (operator: Operator, folder: string): Promise<void> {
  const { page } = operator
  await goTo(operator, 'builds')
  await page.getByRole('button', { name: 'Build an image' }).click()
  const form = page.locator('dialog')
  await form.locator('input[type=file]').setInputFiles(folder)
  await form.getByRole('textbox', { name: /^Image name/ }).fill('console/built:v1')
  await form.getByLabel('What its steps reach').selectOption('isolated')
  await form.getByRole('button', { name: 'Build', exact: true }).click()
}

async function builds ({ server }: Operator): Promise<readonly Build[]> {
  return await server.api.call('GET', '/builds') as readonly Build[]
}

async function outlives (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await server.kill9()
  await server.restart({ server: { listen: new URL(server.url).host } })
  await page.getByText(/The session has ended/).waitFor(PATIENCE)
  await giveKey(page, server.key)
  await page.locator('main table').first().waitFor(PATIENCE)
  await eventually('the build is over', async () => (await builds(operator)).every(({ status }) => ['ready', 'failed', 'cancelled'].includes(status)), LONG)
  const all = await builds(operator)
  t.equal(all.length, 1, 'it was not begun a second time')
  await eventually('the page says how', async () => (await page.locator('main table tbody .state').first().innerText()).trim() === all[0]?.status, { explain: async () => await page.locator('main table').first().innerText() })
  t.equal(await page.locator('main table tbody tr').count(), 1)
  // Of requests to the server that was not there, and with a session that it had not known.
  operator.complaints.length = 0
}

async function ends (t: Test, operator: Operator, folder: string): Promise<void> {
  const { page } = operator
  await begin(operator, folder)
  const log = page.locator('dialog pre.output')
  await eventually('what a step has printed', async () => /it says hello from the folder/.test(await log.innerText()), { ...LONG, explain: async () => await log.innerText() })
  await look(t, operator, { name: 'dialog-build-log', isOpen: true })
  await page.keyboard.press('Escape')
  await eventually('it is ready', async () => (await builds(operator)).some(({ status }) => status === 'ready'), LONG)
  await look(t, operator, { place: 'builds', shown: 'console/built', name: 'builds' })
}
