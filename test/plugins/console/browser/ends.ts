// What a key may not, and a server that goes away and comes back.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { openPage } from '../../../helpers/browser.ts'
import { cannot, giveKey, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const reason = cannot() || skipWithout('builds', 'host', 'volumes')

if (reason === false) await t.test('an operator meets bounds', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  await createShell(operator.server, operator.image, 'i=0; while true; do echo beat $i; i=$((i+1)); sleep 1; done', { name: 'subject' })
  await waitFor(operator.server, 'subject', 'Running')
  await t.test('a key without scopes sees why', async (t) => { await reads(t, operator) })
  await t.test('a session ends with its key', async (t) => { await isRevoked(t, operator) })
  await t.test('a list says that the server is away, and is whole when it is back', async (t) => { await outlives(t, operator) })
  await t.test('a log lives through it, too', async (t) => { await outlivesAtWork(t, operator) })
}

async function reads (t: Test, operator: Operator): Promise<void> {
  const { key } = await operator.server.api.call('POST', '/keys', { name: 'reader', scopes: ['instance:read'] }) as { readonly key: string }
  const reader = { ...operator, ...await openPage(t) }
  await logIn(reader, key)
  await reader.page.getByRole('button', { name: 'Create instance: This key lacks the scope instance:write.' }).waitFor()
  await goTo(reader, `instances/${await idOf(operator, 'subject')}`)
  for (const verb of ['Standby', 'Stop', 'Fork', 'Delete']) await reader.page.getByRole('button', { name: `${verb}: This key lacks the scope instance:write.` }).waitFor()
  for (const page of ['keys', 'volumes', 'images', 'builds', 'host']) {
    await goTo(reader, page)
    await reader.page.getByText('This key may not look here.').waitFor()
  }
  await goTo(reader, 'host/log')
  await reader.page.getByText('It lacks the scope host-log:read.').waitFor()
  t.equal(await reader.page.locator('.tabs a[aria-disabled=true]').count(), 5, 'each side says so')
  t.same(reader.complaints, [])
}

async function isRevoked (t: Test, operator: Operator): Promise<void> {
  const { id, key } = await operator.server.api.call('POST', '/keys', { name: 'short', scopes: ['instance:read'] }) as { readonly id: string, readonly key: string }
  await logIn(operator, key)
  await operator.page.getByRole('link', { name: 'subject' }).waitFor(PATIENCE)
  await operator.server.api.call('DELETE', `/keys/${id}`)
  await operator.page.getByText(/The session has ended/).waitFor(PATIENCE)
  t.equal(await operator.page.getByRole('link', { name: 'subject' }).count(), 0, 'what the key showed is gone')
}

async function outlives (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await giveKey(page, server.key)
  await page.getByRole('link', { name: 'subject' }).waitFor(PATIENCE)
  await server.kill9()
  await page.getByText(/The connection to the server was lost/).waitFor(PATIENCE)
  await server.restart({ server: { listen: new URL(server.url).host } })
  await page.getByText(/The session has ended/).waitFor(PATIENCE)
  await giveKey(page, server.key)
  await page.getByRole('link', { name: 'subject' }).waitFor(PATIENCE)
  t.equal(await page.getByRole('link', { name: 'subject' }).count(), 1, 'once')
  t.equal(await page.getByText(/The connection to the server was lost/).count(), 0, 'nothing of before is left')
}

async function outlivesAtWork (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'subject')}/logs`)
  await page.getByText(/beat 0$/m).waitFor(PATIENCE)
  await server.kill9()
  await page.getByText(/the stream was cut off/).waitFor(PATIENCE)
  await server.restart({ server: { listen: new URL(server.url).host } })
  await page.getByText(/The session has ended/).waitFor(PATIENCE)
  await giveKey(page, server.key)
  await page.getByText(/beat 0$/m).waitFor(PATIENCE)
  const shown = await page.evaluate<string>('document.querySelector(".lines pre").textContent')
  const beats = shown.split('\n').filter((line) => line.startsWith('beat'))
  t.equal(new Set(beats).size, beats.length, 'no line is there twice')
}
