// What is inside of an instance: its log, terminals in it, its files.
import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { eventually } from '../../../helpers/eventually.ts'
import { startCommand } from '../../../helpers/exec.ts'
import { createShell, waitFor } from '../../../helpers/machine.ts'
import { cannot, goTo, idOf, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const HOSTILE = '<img src=x onerror=alert(1)>'
const LINES = 100_000
// busybox' own line editing asks the terminal where its cursor is, and drops what is typed right behind the answer.
const SHELL = ['/bin/sh', '/tmp/lines']
const PLAIN_SHELL = "printf '# '; while read -r line; do eval \"$line\"; printf '# '; done"
const reason = cannot()

if (reason === false) await t.test('an operator looks into an instance', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t)
  const { server, image } = operator
  await createShell(server, image, 'sleep 100000', { name: 'host' })
  await createShell(server, image, `echo '${HOSTILE}'; while [ ! -e /tmp/go ]; do sleep 1; done; i=0; while [ $i -lt ${LINES} ]; do echo line $i; i=$((i+1)); done; sleep 100000`, { name: 'talker' })
  await logIn(operator)
  await t.test('has a terminal that is resized', async (t) => { await types(t, operator) })
  await t.test('puts a file there and gets it back', async (t) => { await copies(t, operator) })
  await t.test('follows 100,000 lines, as text', async (t) => { await readsLogs(t, operator) })
}

async function types (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await waitFor(server, 'host', 'Running')
  const { result } = await startCommand(server, 'host', { command: ['/bin/sh', '-c', 'echo "$1" > /tmp/lines', '-', PLAIN_SHELL] })
  t.match(await result, { exitCode: 0 })
  await goTo(operator, `instances/${await idOf(operator, 'host')}/terminal`)
  await page.getByLabel('Command').fill(SHELL.join(' '))
  await page.getByRole('button', { name: 'Open a terminal' }).click()
  const screen = async (): Promise<string> => await page.evaluate<string>('document.querySelector(".xterm-rows")?.innerText ?? ""')
  const shows = async (what: string | RegExp): Promise<void> => { await eventually(`the screen with ${String(what)}`, async () => typeof what === 'string' ? (await screen()).includes(what) : what.test(await screen()), { limitMs: PATIENCE.timeout, pollMs: 100, explain: screen }) }
  await shows(/[#$]/)
  await page.keyboard.type('stty size; echo done-$((40+2))\n')
  await shows('done-42')
  const wide = /(\d+) (\d+)/.exec(await screen())
  await page.setViewportSize({ width: 900, height: 700 })
  await page.keyboard.type('clear; stty size; echo again-$((40+3))\n')
  await shows('again-43')
  const narrow = /(\d+) (\d+)/.exec(await screen())
  t.ok(Number(narrow?.[2]) < Number(wide?.[2]), `${String(narrow?.[0])} after ${String(wide?.[0])}`)
  await page.setViewportSize({ width: 1440, height: 900 })
  // a program that takes the whole screen, and gives it back
  await page.keyboard.type('clear; vi /tmp/poem\n')
  await shows(/^~/m)
  await page.keyboard.type('iroses are red')
  // The line of its state reads as it will after the escape until the first key has come to it.
  await shows('roses are red')
  await page.keyboard.press('Escape')
  // An escape and what comes right after it would be one key to it.
  await shows(/^- \/tmp\/poem/m)
  await page.keyboard.type(':wq\n')
  // What vi has read ahead when it ends is lost with it.
  await shows(/#\s*$/)
  await page.keyboard.type('clear; cat /tmp/poem; echo back-$((40+4))\n')
  await shows('back-44')
  t.match(await screen(), /roses are red/)
  await page.keyboard.type('exit 3\n')
  await page.getByText('ended with code 3').waitFor(PATIENCE)
}

async function copies (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'host')}/files`)
  await page.getByLabel(/^Folder/).fill('/tmp')
  await page.locator('input[type=file]').setInputFiles({ name: 'note & <b>.txt', mimeType: 'text/plain', buffer: Buffer.alloc(700_000, 'x') })
  const button = page.getByRole('button', { name: 'Download note & <b>.txt' })
  await button.waitFor(PATIENCE)
  const download = page.waitForEvent('download')
  await button.click()
  const content = await readFile(await (await download).path(), 'utf8')
  t.equal(content.length, 700_000)
  t.match(content, /^x+$/)
}

async function readsLogs (t: Test, operator: Operator): Promise<void> {
  const { server, page } = operator
  await goTo(operator, `instances/${await idOf(operator, 'talker')}/logs`)
  await page.getByText(HOSTILE).waitFor(PATIENCE)
  const { result } = await startCommand(server, 'talker', { command: ['touch', '/tmp/go'] })
  t.match(await result, { exitCode: 0 })
  await page.getByText(/100,001 lines/).waitFor(PATIENCE)
  await page.getByText(/line 99999/).waitFor()
  t.ok(await page.evaluate<number>('document.querySelector(".lines").textContent.length') < 20_000, 'only what is in sight is in the page')
  await page.getByLabel('Only lines with').fill('onerror')
  await page.getByText(/1 line of 100,001/).waitFor()
  // The lines in sight are drawn after their number is said.
  await eventually('the one line, as text', async () => (await page.locator('.lines pre').innerText()).trim() === HOSTILE, { explain: async () => await page.locator('.lines pre').innerText() })
  t.equal(await page.locator('.lines img').count(), 0)
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText(/paused/).waitFor()
}
