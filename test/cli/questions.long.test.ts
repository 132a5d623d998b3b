// What takes something away for good asks in a real terminal, and does not ask where there is none: every command that says so of itself.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { SECTIONS } from '../../cli/catalogue/all.ts'
import { eventually } from '../helpers/eventually.ts'
import { withFakeDriver } from '../helpers/fake-driver.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { berth as plain, mainFile, type Ended } from './berth.ts'
import { noTmux, openTerminal } from './terminal.ts'

if (noTmux !== false) {
  t.plan(0, noTmux)
  process.exit()
}

const server = await startTestServer(t, withFakeDriver)
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const contexts = join(testFolder(t), 'contexts.json')
const env = { BERTH_URL: server.url, BERTH_TOKEN: server.key, BERTH_CONTEXTS: contexts }
const berth = async (...args: readonly string[]): Promise<Ended> => await plain(args, { env })
const terminal = await openTerminal(t, { env })

/** By command, a line that goes on to something that is not there: what is answered with yes ends with 3, and what is not with 0. */
const LINES: Readonly<Record<string, string>> = {
  rm: 'rm NAME', 'image rm': 'image rm NAME', 'snapshot rm': 'snapshot rm NAME', 'snapshot schedule rm': 'snapshot schedule rm NAME', 'snapshot restore': 'snapshot restore NAME none', 'volume rm': 'volume rm NAME',
  'device rm': 'device rm NAME', 'ports rm': 'ports rm NAME 80', 'ingress rm': 'ingress rm NAME', 'webhook rm': 'webhook rm NAME', 'key rm': 'key rm NAME'
}
/** Those that look first what there is; each has a case of its own below. */
const LOOK_FIRST = ['compose down', 'context rm']

let count = 0

/** Types a line with NAME in it, waits for its question and presses the keys. Gives the exit code. */
async function answered (line: string, name: string, keys: readonly string[]): Promise<number> {
  const number = ++count
  await terminal.type(`clear; node ${mainFile} ${line.replace('NAME', name)}; echo end-${number}=$?`)
  const ended = new RegExp(`^end-${number}=(\\d+)$`, 'm')
  await eventually('the question', async () => {
    const screen = await terminal.screen()
    if (ended.test(screen)) throw new Error(`it has ended without a question: ${screen}`)
    return screen.includes(`${name}`) && screen.includes('[y/N]') && !screen.includes(`end-${number - 1}=`)
  }, { explain: terminal.screen })
  await terminal.press(...keys)
  return await eventually('its end', async () => {
    const code = ended.exec(await terminal.screen())?.[1]
    return code === undefined ? undefined : { code: Number(code) }
  }, { explain: terminal.screen }).then(({ code }) => code)
}

t.test('every command that says so of itself is tried here', async (t) => {
  t.strictSame(SECTIONS.flatMap(({ commands }) => commands.filter(({ asks }) => asks === true).map(({ name }) => name)).sort(), [...Object.keys(LINES), ...LOOK_FIRST].sort())
  const named = SECTIONS.flatMap(({ commands }) => commands.map(({ name }) => name)).filter((name) => /\brm$/.test(name))
  for (const name of named) t.ok(name in LINES || LOOK_FIRST.includes(name), `${name} asks`)
})

for (const [command, line] of Object.entries(LINES)) {
  await t.test(`${command}: a question on a terminal, which n answers and y`, async (t) => {
    t.equal(await answered(line, `no-${count}`, ['n', 'Enter']), 0, 'no: nothing is done')
    t.equal(await answered(line, `yes-${count}`, ['y', 'Enter']), 3, 'yes: it goes on')
    const script = await berth(...line.replace('NAME', 'nosuch').split(' '))
    t.match(script, { code: 3, out: '' }, 'from a script it goes on')
    t.notMatch(script.error, /y\/N/)
  })
}

t.test('--yes skips the question on a terminal; Enter, Ctrl-D and another word are no; Ctrl-C ends with 130', async (t) => {
  const number = ++count
  await terminal.type(`clear; node ${mainFile} --yes volume rm nosuch; echo end-${number}=$?`)
  await terminal.shows(`end-${number}=3`)
  t.notMatch(await terminal.screen(), /y\/N/)
  for (const keys of [['Enter'], ['C-d'], ['o', 'k', 'Enter'], ['y', 'e', 'Enter']]) t.equal(await answered('volume rm NAME', `no-${count}`, keys), 0, keys.join(' '))
  t.equal(await answered('volume rm NAME', `yes-${count}`, ['y', 'e', 's', 'Enter']), 3)
  t.equal(await answered('volume rm NAME', `cut-${count}`, ['C-c']), 130)
  await terminal.type('clear; stty -a | grep -c " echo .*"; stty -a | grep -c " icanon"')
  t.ok(await terminal.shows('1\n1\n'), 'the terminal is whole')
})

t.test('a project and a context stay with no, and go with yes', async (t) => {
  t.match(await berth('create', '--name', 'shop-web', '--no-network', ...['project=shop', 'service=web', 'instance=shop-web'].flatMap((tag) => ['--tag', `berth.compose.${tag}`]), image, 'tick'), { code: 0 })
  const names = async (): Promise<string> => (await berth('ps', '-a', '--format', '{{name}}')).out
  t.equal(await answered('compose down -p shop', 'shop-web', ['n', 'Enter']), 0)
  t.equal(await names(), 'shop-web\n')
  t.equal(await answered('compose down -p shop', 'shop-web', ['y', 'Enter']), 0)
  t.equal(await names(), '')
  await writeFile(contexts, JSON.stringify({ current: 'prod', contexts: { prod: { url: server.url, token: server.key } } }), { mode: 0o600 })
  t.equal(await answered('context rm NAME', 'prod', ['n', 'Enter']), 0)
  t.match((await berth('context', 'ls')).out, /prod/)
  t.equal(await answered('context rm NAME', 'prod', ['y', 'Enter']), 0)
  t.notMatch((await berth('context', 'ls')).out, /prod/)
})

t.test('rm asks before it takes all of them, and not with --force', async (t) => {
  for (const name of ['one', 'two']) t.match(await berth('create', '--name', name, '--no-network', image, 'tick'), { code: 0 })
  t.equal(await answered('rm --all', 'one', ['n', 'Enter']), 0)
  t.equal((await berth('ps', '-a', '-q')).out.trimEnd().split('\n').length, 2)
  const number = ++count
  await terminal.type(`clear; node ${mainFile} rm --force one two; echo end-${number}=$?`)
  await terminal.shows(`end-${number}=0`)
  t.notMatch(await terminal.screen(), /y\/N/)
  t.equal((await berth('ps', '-a', '-q')).out, '')
})
