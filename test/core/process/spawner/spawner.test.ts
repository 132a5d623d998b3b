// berth-spawner, as the commands that it starts and the server see it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isAlive, readIdentity } from '../../../../core/process/identity.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { spawnerIdentity, SPAWNER_PROGRAM } from '../../../../core/process/spawner/spawner.ts'
import { statFields } from '../../../../core/process/stat.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()
const RUN = new URL('../../../../core/process/run.js', import.meta.url).href

/** This process, as a program of its own that starts commands and prints what it says. */
function program (text: string): string[] {
  return ['--input-type=module', '--eval', `import { createHostCommands } from ${JSON.stringify(RUN)}\nconst commands = createHostCommands()\n${text}`]
}

t.test('commands are started by one small process, which is not in the way of a signal to the server\'s group', async (t) => {
  const [one, other] = await Promise.all([1, 2].map(async () => (await commands.run('sh', ['-c', 'echo $PPID'])).stdout.trim()))
  t.equal(one, other)
  t.equal(Number(one), spawnerIdentity()?.pid)
  const fields = statFields(await readFile(`/proc/${one}/stat`, 'utf8'))
  t.equal(fields[2], one, 'a group of its own')
  process.kill(Number(one), 'SIGTERM')
  t.equal((await commands.run('sh', ['-c', 'echo $PPID'])).stdout.trim(), one, 'a polite signal does not end it')
})

t.test('a command has a session of its own, no blocked or ignored signal, no other open file, and the working folder of the server', async (t) => {
  const { stdout } = await commands.run('sh', ['-c', 'cat /proc/self/status; pwd; ls /proc/self/fd; cut -d " " -f 6 /proc/$$/stat; echo $$'])
  t.match(stdout, /^SigBlk:\s+0+$/m)
  t.match(stdout, /^SigIgn:\s+0+$/m)
  const lines = stdout.trim().split('\n')
  t.same(lines.slice(-7, -2), [process.cwd(), '0', '1', '2', '3'], 'the last is the folder that ls reads')
  t.equal(lines.at(-1), lines.at(-2))
})

t.test('many commands at once each get their own input and output', async (t) => {
  const inputs = Array.from({ length: 100 }, (_, index) => `${index}\n`.repeat(index * 200))
  const outputs = await Promise.all(inputs.map(async (input) => (await commands.run('cat', [], { input })).stdout))
  t.same(outputs.map((text) => text.length), inputs.map((text) => text.length))
  t.ok(outputs.every((text, index) => text === inputs[index]))
  const large = Buffer.alloc(20 * 2 ** 20, 'x')
  t.equal((await commands.run('wc', ['-c'], { input: large })).stdout.trim(), String(large.length))
  t.equal((await commands.run('wc', ['-c'], { input: '' })).stdout.trim(), '0')
})

t.test('a text with a NUL is refused before anything runs, since a program would get a part of it', async (t) => {
  await t.rejects(commands.run('echo', ['a\0b']), { name: 'TypeError', message: /NUL/ })
  await t.rejects(commands.run('echo', [], { env: { A: 'x\0y' } }), TypeError)
})

t.test('the signal that a command died by has its name', async (t) => {
  t.match(await commands.run('sh', ['-c', 'kill -SEGV $$']).catch((error: unknown) => error), { failure: { reason: 'signal', signal: 'SIGSEGV' } })
})

t.test('when the spawner is killed, its commands end and say so, and the next one is started by a new one', async (t) => {
  const pidFile = join(testFolder(t), 'pid')
  const running = commands.run('sh', ['-c', 'echo $$ > "$0"; exec sleep 1000', pidFile])
  const failed = t.rejects(running, { message: /berth-spawner, which starts the host's commands, has ended \(SIGKILL\)/ })
  const pid = await eventually('the command runs', async () => Number(await readFile(pidFile, 'utf8').catch(() => '')))
  const command = readIdentity(pid)
  const spawner = spawnerIdentity()
  process.kill(spawner?.pid ?? 0, 'SIGKILL')
  await failed
  await eventually('the command has ended, too', async () => command !== undefined && !isAlive(command))
  t.equal((await commands.run('echo', ['again'])).stdout, 'again\n')
  t.not(spawnerIdentity()?.pid, spawner?.pid)
})

t.test('when the server is killed, the spawner ends, and all that its commands have started', async (t) => {
  const file = join(testFolder(t), 'pids')
  const server = spawn(process.execPath, program(`await commands.run('sh', ['-c', 'sleep 1000 & echo $! $$ $PPID > "$0"; wait', ${JSON.stringify(file)}])`), { stdio: 'inherit' })
  const pids = await eventually('the command runs', async () => /^\d+ \d+ \d+\n/.exec(await readFile(file, 'utf8').catch(() => ''))?.[0].trim().split(' ').map(Number))
  const processes = pids.map(readIdentity)
  t.ok(processes.every((identity) => identity !== undefined))
  server.kill('SIGKILL')
  await once(server, 'exit')
  await eventually('they have ended', async () => processes.every((identity) => identity !== undefined && !isAlive(identity)))
})

t.test('a program that has run commands ends by itself, and one that waits for a command does not', async (t) => {
  const { status, stdout } = spawnSync(process.execPath, program('await commands.run("true", []); const { stdout } = await commands.run("sh", ["-c", "sleep 0.3; echo late"]); process.stdout.write(stdout)'), { encoding: 'utf8', timeout: 60_000 })
  t.same({ status, stdout }, { status: 0, stdout: 'late\n' })
})

t.test('what a command causes is told in the context of its own caller', async (t) => {
  const context = new AsyncLocalStorage<string>()
  const seen = await Promise.all(['one', 'other'].map(async (name) => await context.run(name, async () => {
    await commands.run('true', [])
    return context.getStore()
  })))
  t.same(seen, ['one', 'other'])
})

t.test('nonsense from the other end ends the spawner', async (t) => {
  for (const bytes of [Buffer.alloc(12, 0xff), Buffer.from([1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]), Buffer.from([1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0]), Buffer.concat([Buffer.from([1, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0]), Buffer.alloc(16, 0x7f)])]) {
    t.equal(spawnSync(SPAWNER_PROGRAM, [], { input: bytes, timeout: 10_000 }).signal, null, 'in order')
  }
})
