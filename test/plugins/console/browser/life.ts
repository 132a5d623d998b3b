// The life of an instance by buttons and forms alone.
import t, { type Test } from 'tap'
import { waitFor } from '../../../helpers/machine.ts'
import { cannot, giveKey, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const reason = cannot()

if (reason === false) await t.test('an operator makes an instance and ends it', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  await t.test('logs in, and the key stays nowhere', async (t) => { await logsIn(t, operator) })
  await t.test('makes an instance by the form', async (t) => { await creates(t, operator) })
  await t.test('puts it to standby and restores it', async (t) => { await sleeps(t, operator) })
  await t.test('forks it, and deletes the fork', async (t) => { await forks(t, operator) })
  await t.test('logs out', async (t) => { await logsOut(t, operator) })
}

async function logsIn (t: Test, { server, page }: Operator): Promise<void> {
  await page.goto(`${server.url}/console/`)
  await page.getByLabel('API key').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('this is no key of this server').waitFor()
  await giveKey(page, server.key)
  await page.getByText('No instance yet.').waitFor()
  t.notOk((await page.evaluate<string>('JSON.stringify([localStorage, sessionStorage, document.cookie, document.documentElement.outerHTML, location.href])')).includes(server.key))
}

async function creates (t: Test, { server, page, image }: Operator): Promise<void> {
  await page.getByRole('button', { name: 'Create instance' }).first().click()
  const form = page.locator('dialog')
  await form.getByRole('combobox', { name: /^Image/ }).fill(image)
  await form.getByRole('textbox', { name: /^Name/ }).fill('Not A Name')
  await form.getByRole('textbox', { name: /^Size/ }).fill('128MB')
  await form.getByRole('textbox', { name: /^Cmd/ }).fill('/bin/sh\n-c\nsleep 100000')
  const send = form.getByRole('button', { name: 'Create instance' })
  await send.click()
  await page.locator('.field.faulty').waitFor()
  t.match(await page.locator('.field.faulty').innerText(), /Name/, 'what is refused stands at its field')
  await form.getByRole('textbox', { name: /^Name/ }).fill('by-form')
  await send.click()
  await page.getByRole('heading', { name: /by-form/ }).waitFor(PATIENCE)
  await page.locator('h1 .state-good').waitFor(PATIENCE)
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Running', size: '128MB' })
}

async function sleeps (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'by-form')}`)
  await page.getByRole('button', { name: 'Standby', exact: true }).click()
  await page.locator('h1 .state-asleep').waitFor(PATIENCE)
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Standby' })
  await page.getByRole('button', { name: 'Restore', exact: true }).click()
  await page.locator('h1 .state-good').waitFor(PATIENCE)
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Running' })
}

async function forks (t: Test, { server, page }: Operator): Promise<void> {
  await page.getByRole('button', { name: 'Fork', exact: true }).click()
  await page.locator('dialog').getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('heading', { name: /by-form-fork/ }).waitFor(PATIENCE)
  await waitFor(server, 'by-form-fork', 'Running')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  t.match(await page.locator('dialog').innerText(), /by-form-fork \(\w+\), its disk/)
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('by-form-fork: deleted').waitFor(PATIENCE)
  await page.getByRole('link', { name: 'by-form-fork' }).waitFor({ state: 'hidden', ...PATIENCE })
  await t.rejects(server.api.call('GET', '/instances/by-form-fork'))
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Running' })
}

async function logsOut (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByText('You are logged out.').waitFor()
  await page.reload()
  await page.getByLabel('API key').waitFor()
  t.equal(await page.getByRole('navigation', { name: 'Pages' }).count(), 0)
  await logIn(operator)
  await page.getByRole('link', { name: 'by-form' }).waitFor()
}
