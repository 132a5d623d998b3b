// The end of processes that are not our children, or no longer what they were.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { endProcess } from '../../../core/process/end.ts'
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
