// Every command of the tree is named here with the test that runs it against a real server; one without a test fails.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import t from 'tap'
import { createProgram } from '../../cli/program.ts'
import { packageRoot } from '../../core/package-root.ts'
import { wentWithItsPlugin } from '../../setup/structure/deleted.ts'

/** By file below test/. */
const RUN_BY: Readonly<Record<string, readonly string[]>> = {
  'cli/with-machines.long.test.ts': ['run', 'ps', 'inspect', 'logs', 'exec', 'cp', 'stats', 'standby', 'restore', 'fork', 'events', 'update', 'wait', 'snapshot create', 'snapshot ls', 'pull', 'image pull', 'push', 'image inspect', 'snapshot inspect', 'volume inspect', 'webhook inspect', 'plugins', 'whoami', 'key ls', 'doctor'],
  'cli/with-network.ts': [
    'start', 'stop', 'rm', 'auto-standby status', 'auto-standby hold', 'ports ls', 'ports add', 'ports rm', 'ingress ls', 'ingress create', 'ingress inspect', 'ingress rm', 'ingress log', 'ingress ca', 'image ls', 'image rm', 'image tag',
    'snapshot restore', 'snapshot fork', 'snapshot rm', 'snapshot schedule set', 'snapshot schedule get', 'snapshot schedule rm', 'volume create', 'volume rm', 'volume attach', 'volume detach', 'webhook create', 'webhook ls', 'webhook rm',
    'resources', 'resources reclaim', 'version', 'key create', 'key rm'
  ],
  'plugins/host/commands.test.ts': ['host checks', 'host processes', 'host log'],
  'cli/with-builds.long.test.ts': ['build', 'builds ls', 'builds logs', 'builds cancel'],
  'cli/compose.long.test.ts': ['create', 'compose up', 'compose plan', 'compose ps', 'compose logs', 'compose down', 'volume ls'],
  'cli/commands/port-forward.long.test.ts': ['port-forward'],
  'cli/with-egress.ts': ['egress'],
  'integration/devices/inside.ts': ['device available', 'device register', 'device ls', 'device rm'],
  'cli/connection.long.test.ts': ['login', 'context ls', 'context use', 'context rm'],
  'cli/help.test.ts': ['completion'],
  'core/cli/serve.long.test.ts': ['serve'],
  'core/cli/command-line.test.ts': ['check-config', 'print-config', 'token'],
  'plugins/volumes/rollback.test.ts': ['restore-database'],
  'plugins/instances/backup.long.test.ts': ['backup']
}

/** Those that do something themselves, by their whole names. */
function commandsOf (command: Command, path: readonly string[] = []): string[] {
  const below = command.commands.flatMap((each) => commandsOf(each, [...path, each.name()]))
  // A group that is a command, too, takes arguments or has examples of its own; here that is told by its having no other way to be called.
  return path.length > 0 && (command.commands.length === 0 || GROUPS_THAT_RUN.includes(path.join(' '))) ? [path.join(' '), ...below] : below
}

const GROUPS_THAT_RUN = ['resources']

t.test('every command is named with a test, and no other', async (t) => {
  const named = Object.values(RUN_BY).flat()
  t.strictSame(named.filter((name, index) => named.indexOf(name) !== index), [], 'none twice')
  t.strictSame([...named].sort(), commandsOf(createProgram(async () => await Promise.resolve())).sort())
})

t.test('that test runs it', async (t) => {
  for (const [file, names] of Object.entries(RUN_BY)) {
    if (wentWithItsPlugin(`test/${file}`)) continue
    const source = await readFile(join(packageRoot, 'test', file), 'utf8')
    for (const name of names) t.ok(formsOf(name).some((form) => source.includes(form)), `${name} by ${file}`)
  }
})

/** How tests write a command: words of a list, a line, or a helper named for the group. */
function formsOf (name: string): string[] {
  const words = name.split(' ')
  const [first = '', ...rest] = words
  return [`'${words.join("', '")}'`, `'${name} `, `'${name}'`, `} ${name} `, ...rest.length > 0 ? [`${first}('${rest.join("', '")}'`] : []]
}
