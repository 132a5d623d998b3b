// A policy is tried before anybody has it, on the page of the way out.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { accessibilityFaults } from '../../../helpers/browser.ts'
import { cannot, goTo, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const CREDENTIALS = { OPENAI: { source: { env: 'KEY' }, inject: [{ hosts: ['api.example.com'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } }
const reason = cannot() || skipWithout('egress')

if (reason === false) await t.test('an operator tries a policy', { timeout: 300_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  await logIn(operator)
  await goTo(operator, 'egress')
  await operator.page.getByRole('button', { name: 'Try a policy' }).click()
  t.match(await answer(t, operator, 'https://api.example.com/v1'), /let through.*OPENAI, as Authorization/s)
  t.match(await answer(t, operator, 'http://169.254.169.254/secrets'), /refused.*Metadata services cannot be reached/s)
  t.match(await answer(t, operator, 'https://www.example.com/'), /No credential would be put in/)
  await fill(operator, 'nothing')
  await operator.page.locator('.field.faulty').waitFor(PATIENCE)
  t.match(await operator.page.locator('.field.faulty').innerText(), /must begin with http/, 'what is wrong stands at its field')
  t.same(operator.complaints.filter((line) => !/status of 400 /.test(line)), [])
}

async function fill ({ page }: Operator, url: string): Promise<void> {
  const form = page.locator('dialog')
  await form.getByRole('textbox', { name: /^Url/ }).fill(url)
  await form.getByRole('textbox', { name: /^Credentials/ }).fill(JSON.stringify(CREDENTIALS))
  await form.getByRole('button', { name: 'Try a policy' }).click()
}

async function answer (t: Test, operator: Operator, url: string): Promise<string> {
  const { page } = operator
  await fill(operator, url)
  await page.locator('dialog').getByRole('button', { name: 'Try another' }).waitFor(PATIENCE)
  const text = await page.locator('dialog').innerText()
  t.same(await accessibilityFaults(page), [])
  await page.locator('dialog').getByRole('button', { name: 'Try another' }).click()
  return text
}
