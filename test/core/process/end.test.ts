// The end of processes that are not our children, or no longer what they were.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { endGently, endProcess } from '../../../core/process/end.ts'
import { isAlive, readIdentity } from '../../../core/process/identity.ts'

await t.test('a process is ended, and then it has ended', async (t) => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = readIdentity(child.pid ?? 0)
  if (identity === undefined) throw new Error('the process is not there')
  t.ok(isAlive(identity))
  await endProcess(identity)
  t.notOk(isAlive(identity))
  await endProcess(identity)
})

await t.test('a stranger with the same pid is neither ended nor waited for', async (t) => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const identity = readIdentity(child.pid ?? 0)
  if (identity === undefined) throw new Error('the process is not there')
  await endProcess({ ...identity, startTicks: '1' })
  await endProcess({ ...identity, bootId: 'another boot' })
  t.same(readIdentity(identity.pid), identity)
})

await t.test('a process that is asked to end does so in its own way, and one that will not is ended', async (t) => {
  const start = async (script: string) => {
    const child = spawn('sh', ['-c', `${script}; echo ready; while :; do sleep 0.05; done`], { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const identity = readIdentity(child.pid ?? 0)
    if (identity === undefined) throw new Error('the process is not there')
    return { child, identity }
  }
  const polite = await start('trap "exit 7" QUIT')
  const exited = once(polite.child, 'exit')
  await endGently(polite.identity, { request: 'SIGQUIT', withinMs: 60_000 })
  t.same(await exited, [7, null])
  const deaf = await start('trap "" TERM')
  const killed = once(deaf.child, 'exit')
  await t.rejects(endGently(deaf.identity, { withinMs: 60_000, signal: AbortSignal.abort(new Error('over')) }), { message: 'over' })
  t.ok(isAlive(deaf.identity), 'who gives up waiting leaves it as it is')
  await endGently(deaf.identity, { withinMs: 50 })
  t.same(await killed, [null, 'SIGKILL'])
})
