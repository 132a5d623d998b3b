// The commands that README.md gives a newcomer, taken out of it and run as they stand there.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { writeShellFile } from '../../setup/quickstart/shell-file.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { clientEnvironment } from '../cli/berth.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { freePort } from '../helpers/free-port.ts'

const MOST_COMMANDS = 10

t.setTimeout(1_400_000)
const readme = await readFile(join(packageRoot, 'README.md'), 'utf8')
const server = await startTestServer(t)
await push(server, await busyboxImage(), 'demo/busybox:latest')

/** The fenced blocks of a language, in their order. */
function blocks (language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, text]) => text ?? '')
}

async function run (program: string, args: readonly string[]): Promise<{ code: unknown, output: string }> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: packageRoot, env: { ...process.env, URL: server.url, KEY: server.key } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { output += chunk.toString() })
  const [code] = await once(child, 'close')
  return { code, output }
}

/** A reader sees an error; a shell only with this. What follows for ever is left after a while, as a reader leaves it with Ctrl-C. */
const READER = `set -eu
curl () {
  case "$*" in
    *follow=true*) command curl -sS --fail-with-body --max-time 20 "$@" || [ $? -eq 28 ] ;;
    *) command curl -sS --fail-with-body "$@" ;;
  esac
}
`

const folder = await mkdtemp(join(tmpdir(), 'berth-new-user-'))
t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })

t.test('from the server that quickstart leaves to a web program of one\'s own that is reached, sleeps and is forked, in at most ten commands and without curl', { skip: skipWithout('builds') }, async (t) => {
  const port = String(await freePort('127.0.0.1'))
  const commands = (blocks('bash')[0] ?? '').replaceAll('8080', port).trim().split('\n').map((line) => line.replace(/ +# .*$/, ''))
  t.ok(commands.length <= MOST_COMMANDS && commands.every((line) => !/\bcurl\b/.test(line)), commands.join('; '))
  await mkdir(join(folder, '.quickstart/run-1'), { recursive: true })
  await writeShellFile(join(folder, '.quickstart/run-1'), server)
  await mkdir(join(folder, 'site'))
  await writeFile(join(folder, 'site/Dockerfile'), blocks('dockerfile')[0] ?? '')

  // One shell for all of them, as a user has it; it says when each is done.
  const shell = spawn('bash', ['--noprofile', '--norc'], { detached: true, cwd: folder, env: clientEnvironment(), stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = once(shell, 'close')
  t.teardown(async () => {
    // With all that it runs: they are one group.
    if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGTERM')
    await ended
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding('utf8').on('data', (text: string) => { output += text })
  for (const [index, command] of commands.entries()) {
    const from = output.length
    shell.stdin.write(`${command}\necho "done-${index}=$?"\n`)
    await eventually(`"${command}" ends`, () => output.includes(`done-${index}=`), { limitMs: 1_200_000, pollMs: 100, explain: () => output })
    t.ok(output.includes(`done-${index}=0\n`), command, { output: output.slice(from) })
    if (command.endsWith('&')) await eventually('the program is reached', async () => await fetch(`http://127.0.0.1:${port}`).then(({ ok }) => ok, () => false))
    if (command.includes('wget')) t.match(output.slice(from), /hello from Linux/)
    if (command === 'berth ps') for (const name of ['web', 'twin']) t.match(output.slice(from), new RegExp(`${name} +localhost/hello\\S* +Running`))
  }
})

t.test('what follows on them works, too', { skip: skipWithout('builds', 'snapshots') }, async (t) => {
  const commands = blocks('bash')[1] ?? ''
  t.match(commands, /berth exec hello/, 'it is the block that is meant')
  const { code, output } = await run('/bin/bash', ['-c', `. '${join(folder, '.quickstart/run-1/env')}'\nset -eu\nset -o pipefail\n${commands}`])
  t.equal(code, 0, output)
  t.match(output, /root:x:0:0/)
  t.match(output, /^Linux /m, 'the last machine printed what it is')
  t.same(await server.sdk.instances.list(), [], 'and all machines are deleted')
  for (const { id } of await server.sdk.snapshots.list()) await server.sdk.snapshots.delete(id)
})

t.test('the calls of "Talk to it" work one after the other', { skip: skipWithout('builds', 'snapshots') }, async (t) => {
  const [calls = ''] = blocks('sh')
  t.match(calls, /POST "\$URL\/instances\/hello\/standby"/, 'it is the block that is meant')
  const { code, output } = await run('/bin/bash', ['-c', READER + calls])
  t.equal(code, 0, output)
  t.match(output, /data:.*20\d\d/, 'the machine printed the date')
  t.match(output, /"state":"Standby"/)
  t.match(output, /"name":"twin"/)
  t.same(await server.sdk.instances.list(), [], 'and both machines are deleted')
  for (const { id } of await server.sdk.snapshots.list()) await server.sdk.snapshots.delete(id)
})

t.test('the example with the SDK works', async (t) => {
  const [example = ''] = blocks('js')
  const file = join(testFolder(t), 'example.mjs')
  await writeFile(file, `const { URL: url, KEY: key } = process.env\n${example}`)
  const { code, output } = await run(process.execPath, [file])
  t.equal(code, 0, output)
  t.match(output, /\[\]/)
})

t.test('every npm command in it is one of package.json', async (t) => {
  const { scripts }: { scripts: Record<string, string> } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8'))
  const named = new Set([...readme.matchAll(/npm run ([a-z:-]+)/g)].map(([, name]) => name ?? ''))
  t.ok(named.size > 3, [...named].join(', '))
  for (const name of named) t.ok(name in scripts, name)
})
