// A server that is killed and comes back while an operator is in the middle of something: nothing is there twice, and nothing that is shown is old.
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { runCommand } from '../../../helpers/exec.ts'
import { testFolder } from '../../../helpers/folder.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { cannot, giveKey, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const UNSETTLED = new Set(['Created', 'Initializing', 'Shutdown'])
const SETTLING = { limitMs: PATIENCE.timeout, pollMs: 300 }
/** Long enough to be in the middle of when the server goes. */
const FILE = Buffer.alloc(32 * 1024 * 1024, 'berth ')
const reason = cannot()

if (reason === false) await t.test('an operator is in the middle of something when the server is killed', { timeout: 900_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  await createShell(operator.server, operator.image, 'sleep 100000', { name: 'subject', vcpus: 1 })
  await waitFor(operator.server, 'subject', 'Running')
  await logIn(operator)
  await t.test('of a terminal', async (t) => { await terminal(t, operator) })
  const file = join(testFolder(t, { large: '' }), 'large')
  await writeFile(file, FILE)
  await t.test('of an upload', async (t) => { await upload(t, operator, file) })
  await t.test('of a download', async (t) => { await download(t, operator) })
  await t.test('of a policy that is tried', { skip: skipWithout('egress') }, async (t) => { await trial(t, operator) })
  await t.test('of a look at the server\'s log', { skip: skipWithout('host') }, async (t) => { await serverLog(t, operator) })
  await t.test('of a look at an image', async (t) => { await imageDetails(t, operator) })
  await t.test('of a create', async (t) => { await create(t, operator) })
  await t.test('of a fork', async (t) => { await presses(t, operator, 'Fork', true) })
  await t.test('of a standby', async (t) => { await presses(t, operator, 'Standby') })
  await t.test('of a restore', async (t) => {
    await reaches(operator, 'standby', 'Standby')
    await presses(t, operator, 'Restore')
  })
  await t.test('of a deletion', async (t) => { await presses(t, operator, 'Delete', true) })
}

/** Kills the server right after `begin`, and comes back with the key once the page asks for it. */
async function dies ({ server, page }: Operator, begin: () => Promise<unknown>, meanwhile: () => Promise<unknown> = async () => undefined): Promise<void> {
  await begin()
  await server.kill9()
  await meanwhile()
  await server.restart({ server: { listen: new URL(server.url).host } })
  await page.getByText(/The session has ended/).waitFor(PATIENCE)
  await giveKey(page, server.key)
}

/** Names and states as the list shows them, once they are those that the API tells and nothing is under way. */
async function agrees (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await goTo(operator, 'instances')
  await page.locator('h1 .count').waitFor(PATIENCE)
  let told: string[] = []
  let shown: string[] = []
  await eventually('the list says what the server does', async () => {
    const instances = await server.api.call('GET', '/instances') as ReadonlyArray<{ readonly name: string, readonly state: string }>
    told = instances.map(({ name, state }) => `${name} ${state}`).toSorted()
    shown = (await page.evaluate<string[]>('[...document.querySelectorAll("main table[aria-label=Instances] tbody tr")].map((row) => row.querySelector(".name").textContent + " " + row.querySelector(".state").textContent)')).toSorted()
    return !instances.some(({ state }) => UNSETTLED.has(state)) && told.join() === shown.join()
  }, { ...SETTLING, explain: () => `${told.join()} | ${shown.join()}` })
  t.equal(new Set(shown.map((row) => row.split(' ')[0])).size, shown.length, `each once: ${shown.join(', ')}`)
  t.equal(await page.getByText(/The connection to the server was lost/).count(), 0)
}

async function reaches ({ server }: Operator, step: string, state: string): Promise<void> {
  const now = await server.api.call('GET', '/instances/subject') as { readonly state: string }
  if (now.state !== state) await server.api.call('POST', `/instances/subject/${step}`)
}

/** The server has a row of it, and is at work. */
async function isBegun ({ server }: Operator, name: string): Promise<void> {
  await eventually(`${name} is begun`, async () => (await server.api.call('GET', '/instances') as ReadonlyArray<{ readonly name: string }>).some((instance) => instance.name === name), { pollMs: 20 })
}

/** A button of the instance, and of the dialog that it opens. */
async function presses (t: Test, operator: Operator, verb: string, asks = false): Promise<void> {
  const { page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'subject')}`)
  await page.getByRole('button', { name: verb, exact: true }).first().click()
  await dies(operator, async () => {
    if (asks) await page.locator('dialog').getByRole('button', { name: verb, exact: true }).click()
    if (verb === 'Fork') await isBegun(operator, 'subject-fork')
    else await page.evaluate('new Promise((resolve) => setTimeout(resolve, 150))')
  })
  await agrees(t, operator)
}

async function create (t: Test, operator: Operator): Promise<void> {
  const { page, image } = operator
  await goTo(operator, 'instances')
  await page.getByRole('button', { name: 'Create instance' }).first().click()
  const form = page.locator('dialog')
  await form.getByRole('combobox', { name: /^Image/ }).fill(image)
  await form.getByRole('textbox', { name: /^Name/ }).fill('made-while')
  await form.getByRole('textbox', { name: /^Size/ }).fill('128MB')
  await form.getByRole('textbox', { name: /^Cmd/ }).fill('/bin/sh\n-c\nsleep 100000')
  await dies(operator, async () => {
    await form.getByRole('button', { name: 'Create instance' }).click()
    await isBegun(operator, 'made-while')
  })
  await agrees(t, operator)
}

async function terminal (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'subject')}/terminal`)
  const open = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Open a terminal' }).click()
    await eventually('a prompt', async () => /[#$]/.test(await page.evaluate<string>('document.querySelector(".xterm-rows")?.innerText ?? ""')), SETTLING)
  }
  await open()
  await dies(operator, async () => { await page.keyboard.type('sleep 1000') }, async () => { await page.getByText('The connection was lost').first().waitFor(PATIENCE) })
  await page.getByText('No terminal is open.').waitFor(PATIENCE)
  await open()
  t.equal(await page.locator('section.terminal').count(), 1)
}

async function upload (t: Test, operator: Operator, file: string): Promise<void> {
  const { page, server } = operator
  await goTo(operator, `instances/${await idOf(operator, 'subject')}/files`)
  const send = async (): Promise<void> => {
    await page.getByLabel(/^Folder/).fill('/tmp')
    await page.locator('input[type=file]').setInputFiles(file)
  }
  await dies(operator, send)
  await page.getByText('Nothing was looked at yet.').waitFor(PATIENCE)
  await send()
  await page.getByRole('button', { name: 'Download large' }).waitFor(PATIENCE)
  const { stdout } = await runCommand(server, await idOf(operator, 'subject'), { command: ['sha256sum', '/tmp/large'] })
  t.match(stdout, createHash('sha256').update(FILE).digest('hex'), 'it is there whole, and once')
}

async function download (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  const look = async (): Promise<void> => {
    await page.getByLabel(/^Folder/).fill('/tmp')
    await page.getByRole('button', { name: 'Look', exact: true }).click()
    await page.getByRole('button', { name: 'Download large' }).waitFor(PATIENCE)
  }
  await look()
  await dies(operator, async () => { await page.getByRole('button', { name: 'Download large' }).click() })
  await look()
  const begun = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download large' }).click()
  t.ok((await readFile(await (await begun).path())).equals(FILE), 'whole')
}

async function trial (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await goTo(operator, 'egress')
  const fill = async (): Promise<void> => {
    await page.locator('main').getByRole('button', { name: 'Try a policy' }).click()
    await page.locator('dialog').getByRole('textbox', { name: /^Url/ }).fill('https://api.example.com/')
  }
  const press = async (): Promise<void> => { await page.locator('dialog').getByRole('button', { name: 'Try a policy' }).click() }
  await fill()
  await dies(operator, async () => undefined, async () => {
    await press()
    await page.locator('dialog').getByText('The server does not answer.').waitFor(PATIENCE)
  })
  await fill()
  await press()
  await page.getByText('It would be let through.').waitFor(PATIENCE)
  t.equal(await page.locator('dialog').count(), 1)
}

async function serverLog (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await goTo(operator, 'host/log')
  const search = page.getByLabel('Only lines with')
  const found = async (): Promise<number> => {
    await search.fill('API socket open')
    return Number(/^(\d+) lines? of/.exec(await page.locator('section.logs [role=status]').innerText())?.[1] ?? 0)
  }
  await eventually('the log tells of the start', async () => await found() === 1, SETTLING)
  await dies(operator, async () => { await page.getByRole('button', { name: 'Pause' }).click() })
  await goTo(operator, 'host/log')
  await eventually('the log tells of the new start', async () => await found() === 1, SETTLING)
  t.equal(await found(), 1, 'and of that one alone: lines of the server before are not beside those of this one')
}

async function imageDetails (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  const look = async (): Promise<void> => {
    await goTo(operator, 'images')
    await page.getByRole('button', { name: /^Details of .*console\/shell/ }).click()
    await page.locator('dialog').getByRole('link', { name: 'subject' }).waitFor(PATIENCE)
  }
  await look()
  await dies(operator, async () => {})
  t.equal(await page.locator('dialog').count(), 0, 'what was told before is not shown as if it held')
  await look()
}
