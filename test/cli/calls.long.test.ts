// What typical calls print, compared as a whole with what was agreed on, in calls.txt: piped, and in real terminals of 40 and 120 columns; with and without NO_COLOR. BERTH_TEST_RECORD=1 writes it down anew.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { withFakeDriver } from '../helpers/fake-driver.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'
import { berth as plain, mainFile } from './berth.ts'
import { startSteadyRelay } from './steady-relay.ts'
import { noTmux, openTerminal } from './terminal.ts'

if (noTmux !== false) {
  t.plan(0, noTmux)
  process.exit()
}

const ESCAPE = '\u001b'
const golden = join(packageRoot, 'test/cli/calls.txt')
await skipFile(skipWithout('snapshots', 'volumes'))
const server = await startTestServer(t, withFakeDriver)
const relay = await startSteadyRelay(t, server)
const own = { BERTH_URL: server.url, BERTH_TOKEN: server.key }
const env = { BERTH_URL: relay.url, BERTH_TOKEN: server.key }

/** Nothing is there yet. */
const EMPTY = ['ps', 'ps -q', 'ps --json', 'volume ls', 'image ls -q', 'snapshot ls', 'webhook ls', 'key ls -q', "ps --format '{{name}}'", 'ps --format jsonl']
/** web runs, job is stopped, two volumes are there. */
const FULL = [
  'ps -a', 'ps', 'ps -q --state Running', 'ps -a --tag team=a', "ps -a --format '{{name}} {{state}}'", 'ps -a --format jsonl --state Nosuch', 'image ls', 'image ls -q', "image inspect cli/busybox --format '{{status}}'",
  "inspect web --format '{{state}} {{vcpus}}'", "inspect web nosuch job --format '{{name}}'", 'inspect nosuch', 'volume ls', 'volume ls --json', 'volume inspect data', 'volume rm nosuch spare none', 'stop web nosuch job',
  'rm', 'logs web --source nosuch', 'ps --nosuch', 'nosuch', 'cp web:/x web:/y', 'run', 'ps --url http://127.0.0.1:1', 'ps --token wrong', 'volume create data --size 1', 'resources reclaim much'
]
const ON_TERMINALS = ['ps -a', 'image ls', 'volume ls', 'inspect nosuch', "inspect web --format '{{state}}'", 'volume ls --tag team=nobody']

const words = (line: string): string[] => (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''))
const steady = (text: string): string => text.replaceAll(String(relay.port), 'PORT').replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'INSTANT')

async function piped (t: Test, line: string): Promise<string> {
  const [one, two] = [await plain(words(line), { env }), line.startsWith('volume rm') || line.startsWith('stop') ? undefined : await plain(words(line), { env: { ...env, NO_COLOR: '1' } })]
  if (two !== undefined) t.strictSame(two, one, `${line}: with NO_COLOR the same`)
  t.notOk((one.out + one.error).includes(ESCAPE), `${line}: no colour where it is piped`)
  return steady(`$ berth ${line}\n${one.out}${one.error.replaceAll(/^/gm, '2> ').replace(/2> $/, '')}=> ${one.code}\n`)
}

/** The screen after each line, with its colours. */
async function shown (columns: number, more: NodeJS.ProcessEnv): Promise<string[]> {
  const terminal = await openTerminal(t, { env: { ...env, ...more } })
  await terminal.tmux('resize-window', '-x', String(columns), '-y', '40')
  await terminal.type('PS1=; berth () { node "$MAIN" "$@"; }')
  const screens: string[] = []
  for (const [number, line] of ON_TERMINALS.entries()) {
    await terminal.type(`clear; berth ${line}; echo end-${number}=$?`)
    const ended = new RegExp(`^end-${number}=\\d+$`, 'm')
    await eventually('its end', async () => ended.test(await terminal.screen()), { explain: terminal.screen })
    const screen = await terminal.tmux('capture-pane', '-p', '-e')
    screens.push(steady(`$ berth ${line}\n${screen.slice(0, screen.search(/end-\d+=/)).replaceAll(/ +$/gm, '')}`).replaceAll(ESCAPE, '\\e'))
  }
  return screens
}

t.test('what typical calls print is what was agreed on', { timeout: 600_000 }, async (t) => {
  const texts = ['Nothing is there yet.']
  for (const line of EMPTY) texts.push(await piped(t, line))
  const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
  const make = async (...args: readonly string[]): Promise<void> => { t.match(await plain(args, { env: own }), { code: 0 }, args.join(' ')) }
  await make('volume', 'create', 'data', '--size', '1', '--tag', 'team=a')
  await make('volume', 'create', 'spare', '--size', '20')
  for (const name of ['web', 'job']) await make('run', '-d', '--name', name, '--size', '128MB', '--vcpus', '1', '--overlay-size', '256MB', '--no-network', '--tag', `team=${name === 'web' ? 'a' : 'b'}`, image, 'tick')
  await make('wait', '--state', 'Running', 'web', 'job')
  await make('stop', 'job')
  const [wide, narrow] = [await shown(120, { MAIN: mainFile }), await shown(40, { MAIN: mainFile })]
  for (const [columns, screens] of [[120, wide], [40, narrow]] as const) t.strictSame(await shown(columns, { MAIN: mainFile, NO_COLOR: '1' }), screens, `at ${columns} columns NO_COLOR changes none of these`)
  texts.push('A terminal of 120 columns.', ...wide, 'A terminal of 40 columns.', ...narrow, 'Piped.')
  for (const line of FULL) texts.push(await piped(t, line))
  const all = texts.join('\n')
  if (process.env['BERTH_TEST_RECORD'] === '1') await writeFile(golden, all)
  t.equal(all, await readFile(golden, 'utf8'))
})

t.test('what has colours has them on a terminal alone, and not with NO_COLOR', async (t) => {
  for (const [more, isColoured] of [[{}, true], [{ NO_COLOR: '1' }, false], [{ NO_COLOR: '' }, true]] as const) {
    const terminal = await openTerminal(t, { env: { ...env, ...more } })
    // The environment of the tests themselves may have it.
    await terminal.type(`clear; ${'NO_COLOR' in more ? '' : 'env -u NO_COLOR '}node ${mainFile} doctor; echo end=$?`)
    await terminal.shows('end=0', 'end=1')
    t.equal((await terminal.tmux('capture-pane', '-p', '-e')).includes(`${ESCAPE}[3`), isColoured, JSON.stringify(more))
  }
  t.notOk((await plain(['doctor'], { env })).out.includes(ESCAPE))
})
