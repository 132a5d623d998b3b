// What buildah is told by the script that stands in the runtime's place.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { stepRuntime } from '../../../../plugins/builds/builder-vm/step-runtime.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()

/** A script that asks a runtime which knows one container. */
async function place (t: Test, crun: string): Promise<(...args: readonly string[]) => Promise<string>> {
  const folder = testFolder(t, { bin: {} })
  await writeFile(join(folder, 'bin/crun'), `#!/bin/sh\n${crun}\n`, { mode: 0o755 })
  const script = join(folder, 'runtime')
  await writeFile(script, stepRuntime(), { mode: 0o755 })
  return async (...args) => (await commands.run(script, args, { env: { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` } })).stdout
}

/** The text that crun prints, of a container whose program has this pid. */
const container = (pid: number): string => [
  `if kill -0 ${pid} 2>/dev/null; then status=running pid=${pid}; else status=stopped pid=0; fi`,
  'printf \'{\\n  "ociVersion": "1.0.0",\\n  "id": "step",\\n  "pid": %s,\\n  "status": "%s",\\n  "annotations": {}\\n}\\n\' "$pid" "$status"'
].join('\n')

t.test('the state of a step that runs is told when it has ended', async (t) => {
  const program = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const ended = once(program, 'exit')
  t.teardown(() => { program.kill('SIGKILL') })
  const ask = await place(t, container(program.pid ?? 0))
  let told = ''
  const telling = ask('state', 'step').then((text) => { told = text })
  await setTimeout(700)
  t.equal(told, '')
  program.kill('SIGKILL')
  await ended
  await telling
  t.match(JSON.parse(told), { pid: 0, status: 'stopped' })
})

t.test('the state of one that has ended, or was only created, is told at once', async (t) => {
  t.match(JSON.parse(await (await place(t, container(2 ** 22 + 1)))('--log-format', 'json', 'state', 'step')), { status: 'stopped' })
  const created = container(process.pid).replaceAll('running', 'created')
  t.match(JSON.parse(await (await place(t, created))('state', 'step')), { status: 'created', pid: process.pid })
})

t.test('what the runtime refuses is refused in its words', async (t) => {
  const ask = await place(t, 'echo "no such container" >&2; exit 3')
  await t.rejects(ask('state', 'step'), { message: /no such container/ })
})
