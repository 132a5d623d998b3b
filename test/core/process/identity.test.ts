import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { bootId, isAlive, readIdentity, signalProcess } from '../../../core/process/identity.ts'

t.test('a process is known by its start and its boot, whatever its name is', async (t) => {
  const child = spawn('bash', ['-c', 'exec -a "a) S 1 (b" sleep 1000'], { stdio: 'ignore' })
  await once(child, 'spawn')
  t.teardown(() => child.kill('SIGKILL'))
  const identity = readIdentity(child.pid ?? 0)
  if (identity === undefined) throw new Error('the child has no identity')
  t.match(identity.startTicks, /^\d+$/)
  t.equal(identity.bootId, bootId())
  t.equal(isAlive(identity), true)
  t.equal(isAlive({ ...identity, startTicks: '1' }), false, 'a later process with the same pid')
  t.equal(isAlive({ ...identity, bootId: 'other' }), false, 'a process of an earlier boot')
  t.equal(signalProcess({ ...identity, startTicks: '1' }, 'SIGKILL'), false)
  t.equal(child.exitCode ?? child.signalCode, null, 'the wrong identity hit nobody')
  t.equal(signalProcess(identity, 'SIGTERM'), true)
  await once(child, 'exit')
  t.equal(isAlive(identity), false)
  t.equal(signalProcess(identity, 'SIGTERM'), false)
})

t.test('there is no identity where there is no process', async (t) => {
  for (const pid of [0, -1, 1.5, 2 ** 30]) t.equal(readIdentity(pid), undefined)
})
