import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { readIdentity } from '../../../core/process/identity.ts'
import { createHostCommands, HostCommandFailed, HostCommandMissing } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'

const commands = createHostCommands()

async function failureOf (promise: Promise<unknown>): Promise<HostCommandFailed> {
  const error = await promise.then(() => undefined, (reason: unknown) => reason)
  if (!(error instanceof HostCommandFailed)) throw new Error('expected HostCommandFailed', { cause: error })
  return error
}

t.test('both outputs come back, input goes in, and arguments meet no shell', async (t) => {
  t.same(await commands.run('sh', ['-c', 'cat; echo err >&2'], { input: 'in\n' }), { stdout: 'in\n', stderr: 'err\n' })
  t.equal((await commands.run('printf', ['%s', '$HOME `id` ; *'])).stdout, '$HOME `id` ; *')
})

t.test('the environment is small, and what is given is added', async (t) => {
  const { stdout } = await commands.run('env', [], { env: { EXTRA: 'yes' } })
  const names = stdout.trim().split('\n').map((line) => line.split('=')[0]).sort()
  t.same(names, ['EXTRA', 'HOME', 'LANG', 'PATH'])
})

t.test('a failure carries the exit code and the last 20 lines of standard error', async (t) => {
  const error = await failureOf(commands.run('sh', ['-c', 'seq 1 30 >&2; exit 3']))
  t.match(error.failure, { reason: 'exit', exitCode: 3 })
  t.same(error.failure.stderr.split('\n').map(Number), Array.from({ length: 20 }, (_, index) => index + 11))
  t.match(error.message, /exited with 3/)
  t.equal(error.kind, 'internal')
})

t.test('secrets are masked in the command and in its output, longest first', async (t) => {
  const error = await failureOf(commands.run('sh', ['-c', 'echo "$0 p%40ss pass" >&2; exit 1', 'user:p@ss-word'], { secrets: ['p@ss', 'p@ss-word', ''] }))
  t.notMatch(error.message, /p@ss|p%40ss/)
  t.match(error.failure.stderr, 'user:*** *** pass')
  t.match(error.failure.command, 'user:***')
})

t.test('a command that is not there names its Debian package', async (t) => {
  const error = await createHostCommands({ packages: [{ name: 'skopeo', commands: ['skopeo'] }] }).run('/nonexistent/skopeo', []).catch((reason: unknown) => reason)
  t.ok(HostCommandMissing.is(error))
  t.match(error, { message: /install the package skopeo/, statusCode: 503 })
  await t.rejects(commands.run('no-such-command', []), { message: 'the host has no command no-such-command' })
})

t.test('a missing working folder is not mistaken for a missing command', async (t) => {
  const error = await commands.run('true', [], { cwd: '/nonexistent' }).catch((reason: unknown) => reason)
  t.notOk(HostCommandMissing.is(error))
  t.match(error, { code: 'ENOENT' })
})

t.test('the deadline kills the command with everything that it started', { timeout: 20_000 }, async (t) => {
  const file = join(testFolder(t), 'pid')
  const error = await failureOf(commands.run('sh', ['-c', 'sleep 1000 & echo $! > "$0"; wait', file], { timeoutMs: 3000 }))
  t.equal(error.failure.reason, 'timeout')
  const { stdout } = await commands.run('cat', [file])
  t.equal(await gone(Number(stdout)), true)
})

t.test('a command that is given no deadline has one', { timeout: 20_000 }, async (t) => {
  const error = await failureOf(createHostCommands({ longestMs: 300 }).run('sleep', ['1000']))
  t.equal(error.failure.reason, 'timeout')
  t.match(error.message, /did not end within 300 ms/)
})

t.test('the signal kills the command and its reason is the rejection', async (t) => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const running = commands.run('sleep', ['1000'], { signal: controller.signal })
  controller.abort(reason)
  await t.rejects(running, reason)
  await t.rejects(commands.run('true', [], { signal: controller.signal }), reason)
})

t.test('a helper that outlives the command does not hold it up', { timeout: 20_000 }, async (t) => {
  const { stdout } = await commands.run('sh', ['-c', 'setsid sleep 6 & echo done'])
  t.equal(stdout, 'done\n')
})

t.test('a command that does not read its input is no failure of its own', async (t) => {
  t.same(await commands.run('true', [], { input: Buffer.alloc(4 * 2 ** 20) }), { stdout: '', stderr: '' })
})

t.test('a command that prints without end is stopped', { timeout: 60_000 }, async (t) => {
  t.equal((await failureOf(commands.run('yes', []))).failure.reason, 'output-too-large')
})

t.test('a file that may not be run is an error of the host, which is named', async (t) => {
  const file = join(testFolder(t), 'tool')
  await writeFile(file, '#!/bin/sh\n')
  const error = await commands.run(file, []).catch((reason: unknown) => reason)
  t.ok(HostCommandMissing.is(error))
  t.match(error, { message: `the host has no command ${file} that this server may execute`, statusCode: 503 })
})

// Polled: the kernel tells nobody but its parent that a process has ended.
async function gone (pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (readIdentity(pid) === undefined) return true
    await delay(20)
  }
  return false
}
