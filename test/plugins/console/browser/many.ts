// A server with 1,000 instances, on which 10,000 things happen: how long the reader waits.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import { multiplyEvents } from '../../../../bench/api/stored-events.ts'
import { multiplyInstance } from '../../../../bench/api/stored-instances.ts'
import type { Page } from '../../../helpers/browser.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { cannot, goTo, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const INSTANCES = 1000
const EVENTS = 10_000
const LAST = 'after-all-of-them'
const SINGLE_UPDATES = 20
/** how many times as long as a plain table of as many rows */
const PAINT = 2
const UPDATE = 0.5
const reason = cannot() || skipWithout('volumes')

if (reason === false) await t.test('an operator looks at 1,000 instances', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  const { server, page, complaints } = operator
  const { id } = await createShell(server, operator.image, 'true', { name: 'stored-0' })
  await waitFor(server, id, 'Stopped')
  await server.stop()
  await multiplyInstance(server.dataDir, id, INSTANCES)
  const before = await multiplyEvents(server.dataDir, EVENTS)
  await server.restart()
  await logIn(operator)
  await goTo(operator, 'keys')
  await page.locator('main table').first().waitFor(PATIENCE)
  const [painted, plain] = [await firstPaint(page), await plainTable(page)]
  t.ok(painted < PAINT * plain, `the list was painted ${Math.round(painted)} ms after its answer, and a plain one takes ${Math.round(plain)} ms`)
  t.match(await page.locator('h1').first().innerText(), /1000/)
  await t.test('each update is done in time', async (t) => { await updatesOne(t, operator) })
  await t.test('10,000 events later everything is right', async (t) => { await updatesMany(t, operator, before) })
  t.same(complaints, [])
}

/**
 * What the page's own work is compared with, since all of it is late on a busy host: the ms in which the browser makes a plain table of as many rows, and lays it out. The longest of
 * some, as what it is compared with is the longest of many.
 */
async function plainTable (page: Page): Promise<number> {
  const times: number[] = []
  for (let time = 0; time < 5; time++) {
    times.push(await page.evaluate<number>(`new Promise((resolve) => requestAnimationFrame(() => {
      const began = performance.now()
      const table = document.createElement('table')
      for (let row = 0; row < ${INSTANCES}; row++) {
        const cells = table.insertRow()
        for (let cell = 0; cell < 8; cell++) cells.insertCell().append(Object.assign(document.createElement('a'), { href: '#/' + row, textContent: 'stored-' + row }))
      }
      document.body.append(table)
      table.getBoundingClientRect()
      table.remove()
      resolve(performance.now() - began)
    }))`))
  }
  return Math.max(...times)
}

/** From the last byte of the list's answer to the frame that has its rows. */
async function firstPaint (page: Page): Promise<number> {
  return await page.evaluate<number>(`new Promise((resolve) => {
    performance.clearResourceTimings()
    const observer = new MutationObserver(() => {
      if (document.querySelector('main table[aria-label=Instances] tbody tr') === null) return
      observer.disconnect()
      requestAnimationFrame(() => { setTimeout(() => {
        const [answer] = performance.getEntriesByType('resource').filter(({ name }) => new URL(name).pathname === '/instances')
        resolve(performance.now() - answer.responseEnd)
      }) })
    })
    observer.observe(document.body, { childList: true, subtree: true })
    location.hash = '#/instances'
  })`)
}

/** From here on, how long the page was busy without a pause, as the browser counts it: 50 ms and more. */
async function watchBusy (page: Page): Promise<void> {
  await page.evaluate("globalThis.busy = []; new PerformanceObserver((list) => { busy.push(...list.getEntries().map(({ duration }) => duration)) }).observe({ type: 'longtask' })")
}

async function updatesOne (t: Test, { server, page }: Operator): Promise<void> {
  await watchBusy(page)
  for (let index = 0; index < SINGLE_UPDATES; index++) {
    const name = `stored-${index}`
    await server.api.call('PATCH', `/instances/${name}`, { restart_policy: { policy: index % 2 === 0 ? 'on_failure' : 'never' } })
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 300))')
  }
  // A machine that does something else, too, makes single ones late.
  const [busy, plain] = [await page.evaluate<number[]>('busy'), await plainTable(page)]
  const late = busy.filter((ms) => ms > UPDATE * plain)
  t.ok(late.length < SINGLE_UPDATES / 2, `most of ${SINGLE_UPDATES} updates took no longer than half a plain table of all, which takes ${Math.round(plain)} ms (not ${late.map(Math.round).join(', ') || 'one'})`)
}

/** All at once, as after a pause: the server's own journal has them, and the page begins where they do. Each makes the list read what changed. */
async function updatesMany (t: Test, { server, page }: Operator, before: string): Promise<void> {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => { release = resolve })
  await page.route('**/events', async (route) => {
    await released
    await route.continue({ url: `${server.url}/events?after=${before}` })
  })
  await page.reload()
  await page.locator('main table').first().waitFor(PATIENCE)
  await watchBusy(page)
  // Behind all of them.
  await server.api.call('POST', '/volumes', { name: LAST, size_gb: 1 })
  const began = performance.now()
  release()
  await goTo({ server, page }, 'events')
  await page.getByText(LAST).first().waitFor(PATIENCE)
  t.comment(`${EVENTS} events were shown ${Math.round(performance.now() - began)} ms after they were asked for`)
  t.equal(await page.locator('h1 .count').first().innerText(), '500')
  await page.getByText('stored-999').first().waitFor()
  await goTo({ server, page }, 'instances')
  // All were made at one time, so which of them come first is not known.
  await page.getByRole('link', { name: /^stored-\d+$/ }).first().waitFor(PATIENCE)
  t.equal(await page.locator('h1 .count').first().innerText(), String(INSTANCES))
  const [busy, plain] = [await page.evaluate<number[]>('busy'), await plainTable(page)]
  t.comment(`without a pause: ${busy.map(Math.round).join(', ')} ms; a plain table: ${Math.round(plain)} ms`)
  t.ok(busy.reduce((sum, ms) => sum + ms, 0) / EVENTS < UPDATE * plain, 'all of them together')
  t.ok(Math.max(...busy) < PAINT * plain, 'and the page never stands for longer than it takes to paint all')
}
