// The console in a real browser, against a real server with real machines. Run by console.long.test.ts in a network namespace of its own.
// BERTH_TEST_PICTURES names a folder in which pictures of each page are kept.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { accessibilityFaults, noBrowser, openPage, type Page, type Watched } from '../helpers/browser.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer, withTemplates, type TestServer } from '../helpers/server.ts'
import { randomBytes, randomInt } from 'node:crypto'

const reason = noBrowser() || (missingPrivileges() ?? false)
const SLOW = 120_000
const PAGES = ['instances', 'egress', 'family', 'images', 'builds', 'snapshots', 'volumes', 'devices', 'ingresses', 'keys', 'webhooks', 'events', 'host']
const HOSTILE = '<img src=x onerror=alert(1)>'

if (reason === false) await t.test('an operator works in the browser', { timeout: 900_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  await createHostCommands().run('ip', ['link', 'set', 'lo', 'up'])
  const server = await startTestServer(t, {
    plugins: {
      ...withTemplates.plugins, networking: { config: { uplink: 'none', namespace: `berth-test-${randomBytes(4).toString('hex')}`, cidr: `10.${randomInt(120, 250)}.${randomInt(256)}.0/24` } }
    }
  })
  const image = await push(server, await busyboxImage(), 'console/shell:latest')
  await createShell(server, image, `echo '${HOSTILE}'; i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i+1)); done; sleep 100000`, { name: 'talker', tags: { note: HOSTILE.replace(/[^a-z =]/g, '') } })
  const watched = await openPage(t)
  await t.test('logs in, and the key stays nowhere', async (t) => { await logsIn(t, server, watched.page) })
  await t.test('makes an instance by the form', async (t) => { await creates(t, server, watched.page, image) })
  await t.test('follows 100,000 lines, as text', async (t) => { await readsLogs(t, server, watched.page) })
  await t.test('has a terminal that is resized', async (t) => { await types(t, server, watched.page) })
  await t.test('puts a file there and gets it back', async (t) => { await copies(t, server, watched.page) })
  await t.test('forks, puts to standby, restores and deletes', async (t) => { await lives(t, server, watched.page) })
  await t.test('every page is free of faults', async (t) => { await looks(t, server, watched) })
  await t.test('a key without scopes sees why', async (t) => { await reads(t, server) })
  await t.test('says that the server is away, and that it is back', async (t) => { await outlives(t, server) })
}

async function logsIn (t: Test, server: TestServer, page: Page): Promise<void> {
  await page.goto(`${server.url}/console/`)
  await page.getByLabel('API key').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('this is no key of this server').waitFor()
  await logIn(server, page, server.key)
  await page.getByRole('link', { name: 'talker' }).waitFor()
  t.notOk((await page.evaluate<string>('JSON.stringify([localStorage, sessionStorage, document.cookie, document.documentElement.outerHTML, location.href])')).includes(server.key))
}

async function logIn (server: TestServer, page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
}

async function creates (t: Test, server: TestServer, page: Page, image: string): Promise<void> {
  await page.getByRole('button', { name: 'Create instance' }).click()
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
  await page.getByRole('heading', { name: /by-form/ }).waitFor({ timeout: SLOW })
  await page.locator('h1 .state-good').waitFor({ timeout: SLOW })
  t.match(await server.api.call('GET', '/instances/by-form'), { state: 'Running' })
}

async function readsLogs (t: Test, server: TestServer, page: Page): Promise<void> {
  const { id } = await server.api.call('GET', '/instances/talker') as { id: string }
  await page.goto(`${server.url}/console/#/instances/${id}/logs`)
  await page.getByText(/100,001 lines/).waitFor({ timeout: SLOW })
  await page.getByText(/line 99999/).waitFor()
  t.ok(await page.evaluate<number>('document.querySelector(".lines").textContent.length') < 20_000, 'only what is in sight is in the page')
  await page.getByLabel('Only lines with').fill('onerror')
  await page.getByText(/1 lines of 100,001/).waitFor()
  t.match(await page.locator('.lines pre').innerText(), HOSTILE)
  t.equal(await page.locator('.lines img').count(), 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/paused/).waitFor()
}

async function types (t: Test, server: TestServer, page: Page): Promise<void> {
  const { id } = await server.api.call('GET', '/instances/by-form') as { id: string }
  await page.goto(`${server.url}/console/#/instances/${id}/terminal`)
  await page.getByRole('button', { name: 'Open a terminal' }).click()
  const screen = async (): Promise<string> => await page.evaluate<string>('document.querySelector(".xterm-rows")?.innerText ?? ""')
  await eventually('the prompt', async () => /[#$]/.test(await screen()), { limitMs: SLOW, pollMs: 100 })
  await page.keyboard.type('stty size; echo done-$((40+2))\n')
  await eventually('the answer', async () => (await screen()).includes('done-42'), { limitMs: SLOW, pollMs: 100, explain: () => 'no answer' })
  const wide = /(\d+) (\d+)/.exec(await screen())
  await page.setViewportSize({ width: 900, height: 700 })
  await page.keyboard.type('clear; stty size; echo again-$((40+3))\n')
  await eventually('the answer', async () => (await screen()).includes('again-43'), { limitMs: SLOW, pollMs: 100 })
  const narrow = /(\d+) (\d+)/.exec(await screen())
  t.ok(Number(narrow?.[2]) < Number(wide?.[2]), `${String(narrow?.[0])} after ${String(wide?.[0])}`)
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.keyboard.type('exit 3\n')
  await page.getByText('ended with code 3').waitFor({ timeout: SLOW })
}

async function copies (t: Test, server: TestServer, page: Page): Promise<void> {
  const { id } = await server.api.call('GET', '/instances/by-form') as { id: string }
  await page.goto(`${server.url}/console/#/instances/${id}/files`)
  await page.getByLabel(/^Folder/).fill('/tmp')
  await page.locator('input[type=file]').setInputFiles({ name: 'note & <b>.txt', mimeType: 'text/plain', buffer: Buffer.alloc(700_000, 'x') })
  const button = page.getByRole('button', { name: 'Download note & <b>.txt' })
  await button.waitFor({ timeout: SLOW })
  const download = page.waitForEvent('download')
  await button.click()
  const { readFile } = await import('node:fs/promises')
  t.equal((await readFile(await (await download).path())).length, 700_000)
}

async function lives (t: Test, server: TestServer, page: Page): Promise<void> {
  const { id } = await server.api.call('GET', '/instances/by-form') as { id: string }
  await page.goto(`${server.url}/console/#/instances/${id}`)
  await page.getByRole('button', { name: 'Standby', exact: true }).click()
  await page.locator('h1 .state-asleep').waitFor({ timeout: SLOW })
  await page.getByRole('button', { name: 'Restore', exact: true }).click()
  await page.locator('h1 .state-good').waitFor({ timeout: SLOW })
  await page.getByRole('button', { name: 'Fork', exact: true }).click()
  await page.locator('dialog').getByRole('button', { name: 'Fork' }).click()
  await page.getByRole('heading', { name: /by-form-fork/ }).waitFor({ timeout: SLOW })
  await waitFor(server, 'by-form-fork', 'Running')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  t.match(await page.locator('dialog').innerText(), /by-form-fork \(\w+\), its disk/)
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('heading', { name: /^Instances/ }).waitFor({ timeout: SLOW })
  await page.getByRole('link', { name: 'by-form-fork' }).waitFor({ state: 'hidden', timeout: SLOW })
  await t.rejects(server.api.call('GET', '/instances/by-form-fork'))
}

async function looks (t: Test, server: TestServer, { page, complaints }: Watched): Promise<void> {
  const { id } = await server.api.call('GET', '/instances/by-form') as { id: string }
  await server.api.call('POST', '/volumes', { name: 'data', size_gb: 1 })
  await server.api.call('POST', `/instances/${id}/snapshots`, { kind: 'Standby', name: 'before' })
  const details = ['overview', 'logs', 'terminal', 'files', 'snapshots', 'egress', 'events', 'code'].map((tab) => `instances/${id}/${tab}`)
  const folder = process.env['BERTH_TEST_PICTURES']
  if (folder !== undefined) await mkdir(folder, { recursive: true })
  for (const place of [...PAGES, ...details]) {
    await page.goto(`${server.url}/console/#/${place}`)
    await page.locator('h1').first().waitFor()
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 1500))')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.evaluate('new Promise((resolve) => setTimeout(resolve, 250))')
      t.same(await accessibilityFaults(page), [], `${place}, ${colorScheme}`)
      for (const width of [360, 1440, 3840]) {
        await page.setViewportSize({ width, height: width === 3840 ? 2160 : 900 })
        t.ok(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth'), `${place} fits into ${width} pixels`)
        if (folder !== undefined) await page.screenshot({ path: join(folder, `${place.replace(id, 'one').replaceAll('/', '-')}-${colorScheme}-${width}.png`) })
      }
      await page.setViewportSize({ width: 1440, height: 900 })
    }
  }
  // The browser itself says so of the wrong key and of the name that was refused, and of the schedule that is not there.
  t.same(complaints.filter((line) => !/status of (401|400|404|409)/.test(line)), [], 'neither a script nor the policy complains')
}

async function reads (t: Test, server: TestServer): Promise<void> {
  const { key } = await server.api.call('POST', '/keys', { name: 'reader', scopes: ['instance:read'] }) as { key: string }
  const { page } = await openPage(t)
  await page.goto(`${server.url}/console/`)
  await logIn(server, page, key)
  await page.getByRole('button', { name: 'Create instance: This key lacks the scope instance:write.' }).waitFor()
  await page.goto(`${server.url}/console/#/keys`)
  await page.getByText('This key may not look here.').waitFor()
}

async function outlives (t: Test, server: TestServer): Promise<void> {
  const { page } = await openPage(t)
  await page.goto(`${server.url}/console/`)
  await logIn(server, page, server.key)
  await page.getByRole('link', { name: 'talker' }).waitFor()
  await server.kill9()
  await page.getByText(/The connection to the server was lost/).waitFor({ timeout: SLOW })
  await server.restart()
  await page.getByText(/The session has ended/).waitFor({ timeout: SLOW })
  await logIn(server, page, server.key)
  await page.getByRole('link', { name: 'talker' }).waitFor({ timeout: SLOW })
  t.equal(await page.getByRole('link', { name: 'talker' }).count(), 1)
}
