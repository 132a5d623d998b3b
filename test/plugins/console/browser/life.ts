// The life of an instance by buttons and forms alone.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { accessibilityFaults, type Page } from '../../../helpers/browser.ts'
import { waitFor } from '../../../helpers/machine.ts'
import { cannot, giveKey, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const reason = cannot() || skipWithout('resources')

if (reason === false) await t.test('an operator makes an instance and ends it', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t, { resources: { config: { capacity: { memory: '4GB' } } } })
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
  await slides(t, page)
  await form.getByRole('textbox', { name: /^Size/ }).fill('8GB')
  await form.getByRole('textbox', { name: /^Cmd/ }).fill('/bin/sh\n-c\nsleep 100000')
  const send = form.getByRole('button', { name: 'Create instance' })
  await send.click()
  await page.locator('.field.faulty').waitFor()
  t.match(await page.locator('.field.faulty').innerText(), /Name/, 'what is refused stands at its field')
  await form.getByRole('textbox', { name: /^Name/ }).fill('by-form')
  await send.click()
  await form.getByText(/no room for that: .*memory: 8GB wanted, 4GB of 4GB free/).waitFor(PATIENCE)
  t.match(await page.locator('.field.faulty').innerText(), /Size/, 'also what the host has no room for')
  await form.getByRole('textbox', { name: /^Size/ }).fill('128MB')
  await send.click()
  await page.getByRole('heading', { name: /by-form/ }).waitFor(PATIENCE)
  await page.locator('h1 .state-good').waitFor(PATIENCE)
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Running', size: '128MB' })
}

/** By the keyboard, as far as the host's room goes, and past it. */
async function slides (t: Test, page: Page): Promise<void> {
  const form = page.locator('dialog')
  const slider = form.getByRole('slider', { name: /^Size: choose/ })
  const field = form.getByRole('textbox', { name: /^Size/ })
  await slider.waitFor(PATIENCE)
  await form.getByText('one instance may have 32.0 GiB').waitFor(PATIENCE)
  t.match(String(await slider.getAttribute('aria-valuetext')), /^1GB, as the server decides$/)
  await slider.press('Home')
  t.equal(await field.inputValue(), '64MB')
  await slider.press('ArrowRight')
  t.equal(await field.inputValue(), '96MB')
  await slider.press('End')
  t.equal(await field.inputValue(), '4GB')
  t.match(await form.innerText(), /The host has 4.0 GiB of 4.0 GiB left; one instance may have 32.0 GiB/)
  await field.fill('31GB')
  t.equal(await slider.getAttribute('aria-valuetext'), '31GB, more than there is')
  await field.fill('1.5GB')
  t.equal(await slider.getAttribute('aria-valuetext'), '1.5GB')
  await form.getByRole('slider', { name: /^Vcpus: choose/ }).press('Home')
  t.equal(await form.getByRole('spinbutton', { name: /^Vcpus/ }).inputValue(), '1')
  await form.getByRole('spinbutton', { name: /^Vcpus/ }).fill('')
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

/** The fork stands below what it was made of, and costs what is measured. */
async function looksAtFamily (t: Test, { server, page }: Pick<Operator, 'server' | 'page'>): Promise<void> {
  const { id, source } = await server.api.call('GET', '/instances/by-form-fork') as { readonly id: string, readonly source: unknown }
  t.match(source, { kind: 'instance', id: await idOf({ server }, 'by-form'), name: 'by-form' })
  await goTo({ server, page }, 'family')
  const fork = page.locator('.family li', { has: page.getByRole('link', { name: 'by-form-fork', exact: true }) })
  await fork.waitFor(PATIENCE)
  t.match(await fork.innerText(), /of by-form:\s+by-form-fork/)
  await page.getByRole('button', { name: 'Cost of by-form-fork' }).click()
  const dialog = page.locator('dialog')
  await dialog.getByText('(PSS)').waitFor(PATIENCE)
  t.match(await dialog.innerText(), /Its part\s+[\d.]+ MiB \(PSS\), of up to 128MB/)
  t.same(await accessibilityFaults(page), [])
  const { memory, disk } = await server.api.call('GET', `/instances/${id}/footprint`) as { readonly memory: Readonly<Record<string, number>>, readonly disk: Readonly<Record<string, number>> }
  t.ok(Number(memory['own_bytes']) > 2 ** 20 && Number(memory['own_bytes']) <= Number(memory['proportional_bytes']) && Number(memory['proportional_bytes']) <= Number(memory['resident_bytes']), JSON.stringify(memory))
  t.ok(Number(disk['memory_bytes']) > 2 ** 20 && Number(disk['writable_disk_bytes']) > 0, JSON.stringify(disk))
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'by-form-fork', exact: true }).click()
  await page.getByRole('heading', { name: /by-form-fork/ }).waitFor(PATIENCE)
}

async function forks (t: Test, { server, page }: Operator): Promise<void> {
  await page.getByRole('button', { name: 'Fork', exact: true }).click()
  await page.locator('dialog').getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('heading', { name: /by-form-fork/ }).waitFor(PATIENCE)
  await waitFor(server, 'by-form-fork', 'Running')
  await looksAtFamily(t, { server, page })
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
  // A key that may not read what the host has left is told no limits.
  const { key } = await operator.server.api.call('POST', '/keys', { name: 'narrow', scopes: ['instance:read', 'instance:write', 'image:read'] }) as { readonly key: string }
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('API key').waitFor()
  await logIn(operator, key)
  await page.getByRole('button', { name: 'Create instance' }).first().click()
  await page.locator('dialog').getByRole('textbox', { name: /^Size/ }).waitFor(PATIENCE)
  // What it was refused is over by then.
  await page.evaluate('fetch("/resources").then(() => fetch("/capabilities"))')
  t.equal(await page.getByRole('slider').count(), 0)
  t.notMatch(await page.locator('dialog').innerText(), /left/)
}
