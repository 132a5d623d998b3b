// The state of a VM, from QEMU's words and from its silence.
import t from 'tap'
import { sameState, stateOfSilence } from '../../../core/library/vmm/silence.ts'
import { stateOfAnswer } from '../../../plugins/hypervisor-qemu/status.ts'

await t.test('QEMU\'s own states', async (t) => {
  const cases: ReadonlyArray<readonly [string, string | undefined]> = [
    ['running', 'running'], ['paused', 'paused'], ['inmigrate', 'paused'], ['postmigrate', 'paused'], ['prelaunch', 'paused'],
    ['io-error', 'hung'], ['internal-error', 'hung'], ['guest-panicked', 'hung'], ['shutdown', undefined]
  ]
  for (const [status, expected] of cases) t.equal(stateOfAnswer(status)?.status, expected, status)
  for (const status of ['io-error', 'internal-error', 'guest-panicked']) t.match(stateOfAnswer(status)?.reason, /\w+ \w+/, `${status} has a reason`)
})

await t.test('silence has a reason, the best that /proc knows', async (t) => {
  t.match(stateOfSilence('12 (qemu) T 1 2', 1000)?.reason, /stopped by a signal/)
  t.match(stateOfSilence('12 (qemu) D 1 2', 1000)?.reason, /disk.*1000 ms/)
  t.match(stateOfSilence('12 (qemu) R 1 2', 1000)?.reason, /not answered for 1000 ms/)
  t.match(stateOfSilence('', 1000)?.reason, /not answered/)
})

await t.test('the process state is found behind any name', async (t) => {
  t.match(stateOfSilence('12 (qemu) T 1 2', 1000)?.reason, /stopped by a signal/)
  t.match(stateOfSilence('12 (a) T (b) R 1 2', 1000)?.reason, /^the VMM has not answered/)
  t.match(stateOfSilence('12 (a) R (b) T 1 2', 1000)?.reason, /stopped by a signal/)
})

await t.test('a state is the same when status and reason are', async (t) => {
  t.ok(sameState({ status: 'running' }, { status: 'running' }))
  t.notOk(sameState({ status: 'hung', reason: 'a' }, { status: 'hung', reason: 'b' }))
})
