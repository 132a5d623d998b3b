// The surface of the command: what its help says is compared with what was agreed on, file by file in help/.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { SECTIONS } from '../../cli/catalogue/all.ts'
import { createProgram } from '../../cli/program.ts'
import { SERVER_COMMANDS, isServerCommand } from '../../core/cli/catalogue.ts'
import { packageRoot } from '../../core/package-root.ts'
import { berth } from './berth.ts'

const golden = join(packageRoot, 'test/cli/help.txt')

/** The help of the program and of each command, one after the other. BERTH_TEST_RECORD=1 writes it down anew. */
function everyHelp (): string {
  const program = createProgram(async () => await Promise.resolve())
  const texts: string[] = []
  const visit = (command: typeof program): void => {
    command.configureOutput({ writeOut: (text) => texts.push(text), getOutHelpWidth: () => 120, getOutHasColors: () => false })
    command.outputHelp()
    for (const below of command.commands) visit(below)
  }
  visit(program)
  return texts.join('\n').replace(/[ \t]+$/gm, '')
}

t.test('the help of every command is the one that was agreed on', async (t) => {
  const help = everyHelp()
  if (process.env['BERTH_TEST_RECORD'] === '1') await writeFile(golden, help)
  t.equal(help, await readFile(golden, 'utf8'))
})

t.test('every command has an example that begins with its name, and code behind it', async (t) => {
  for (const { name, examples, load } of SECTIONS.flatMap(({ commands }) => commands)) {
    t.ok(examples.some((line) => line.includes(`berth ${name}`)), name)
    t.type((await load()).run, 'function', name)
  }
})

t.test('the commands of the server stay those of the server', async (t) => {
  for (const { name, load } of SERVER_COMMANDS) t.type((await load()).run, 'function', name)
  t.ok(isServerCommand(['restore', './backup']))
  t.notOk(isServerCommand(['restore', 'web']))
  t.match(await berth(['check-config', '--config', '/nonexistent.yaml']), { code: 1, error: /nonexistent\.yaml cannot be read/ })
})

t.test('an unknown command or option is answered with the nearest one, and exit code 2', async (t) => {
  t.match(await berth(['psx']), { code: 2, error: /Did you mean ps/ })
  t.match(await berth(['ps', '--staet', 'Running']), { code: 2, error: /Did you mean --state/ })
  t.match(await berth(['ps', '--state', 'Asleep']), { code: 2, error: /Allowed choices/ })
  t.match(await berth(['logs']), { code: 2, error: /missing required argument/ })
  t.match(await berth(['--version']), { code: 0, out: /^\d+\.\d+\.\d+\n$/ })
})

t.test('nothing of the server is loaded for the help', async (t) => {
  const { code, error } = await berth(['--help'], { env: { NODE_DEBUG: 'esm' } })
  t.equal(code, 0)
  t.match(error, /dist\/cli\/program/, 'what is loaded is told')
  t.notMatch(error, /dist\/(?:plugins|core\/main)|node_modules\/(?:fastify|knex|string-width)|dist\/cli\/(?:session|api\/client)/)
})

t.test('completion names commands, options and their values', async (t) => {
  t.match((await berth(['complete', '--', 's'])).out, /^standby\t/m)
  t.match((await berth(['complete', '--', 'ps', '--s'])).out, /^--state\t/m)
  t.match((await berth(['complete', '--', 'snapshot', ''])).out, /^create/m)
  for (const shell of ['bash', 'zsh', 'fish']) t.match(await berth(['completion', shell]), { code: 0, out: /berth/ })
  t.match(await berth(['completion', 'tcsh']), { code: 2, error: /there is no completion for tcsh/ })
})
