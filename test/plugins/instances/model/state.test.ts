// States are derived from facts, and each call knows the states in which it is allowed.
import t from 'tap'
import { ALLOWED, deriveState, isTerminal, requireState, TRANSITIONS, type GuardedCall, type StateFacts } from '../../../../plugins/instances/model/state.ts'
import { STATES } from '../../../../plugins/instances/api/schemas.ts'

const table: readonly [StateFacts, string, string?][] = [
  [{ vm: undefined, program: 'unseen', standby: false }, 'Stopped'],
  [{ vm: undefined, program: 'started', standby: false }, 'Stopped'],
  [{ vm: undefined, program: 'unseen', standby: true }, 'Standby'],
  [{ vm: { status: 'running' }, program: 'unseen', standby: false }, 'Initializing'],
  [{ vm: { status: 'running' }, program: 'started', standby: false }, 'Running'],
  [{ vm: { status: 'running' }, program: 'exited', standby: false }, 'Shutdown'],
  [{ vm: { status: 'paused' }, program: 'started', standby: false }, 'Paused'],
  [{ vm: { status: 'gone' }, program: 'started', standby: false }, 'Shutdown'],
  [{ vm: { status: 'hung', reason: 'no answer for 2 s' }, program: 'started', standby: false }, 'Unknown', 'no answer for 2 s'],
  [{ vm: { status: 'hung' }, program: 'unseen', standby: false }, 'Unknown', 'the VMM does not answer'],
  [{ vm: { status: 'running' }, program: 'started', standby: false, problem: 'no driver' }, 'Unknown', 'no driver']
]

t.test('each set of facts has one state', async (t) => {
  for (const [facts, state, error] of table) {
    t.match(deriveState(facts), { state, ...(error === undefined ? {} : { error }) }, JSON.stringify(facts))
    if (error === undefined) t.equal(deriveState(facts).error, undefined)
  }
})

t.test('a restore that failed is told of beside the state, as the state is known', async (t) => {
  const asleep = { vm: undefined, program: 'unseen', standby: true, imageProblem: 'QEMU ended' } as const
  t.same(deriveState(asleep), { state: 'Standby', restoreError: 'QEMU ended' })
  t.same(deriveState({ ...asleep, problem: 'no driver' }), { state: 'Unknown', error: 'no driver' })
  t.same(deriveState({ ...asleep, vm: { status: 'running' } }), { state: 'Initializing' })
  t.throws(() => { requireState('start', 'web', deriveState(asleep)) }, { message: /Standby: QEMU ended/ })
})

t.test('each call is allowed in exactly its states', async (t) => {
  const expected: Record<GuardedCall, string[]> = {
    start: ['Stopped'], stop: ['Running', 'Initializing'], standby: ['Running'], restore: ['Standby'],
    exec: ['Running'], cp: ['Running'], forward: ['Running'], stat: ['Running']
  }
  for (const call of Object.keys(expected) as GuardedCall[]) {
    t.same([...ALLOWED[call]].sort(), [...expected[call]].sort(), call)
    for (const state of STATES) {
      if (expected[call].includes(state)) t.doesNotThrow(() => { requireState(call, 'web', { state }) })
      else t.throws(() => { requireState(call, 'web', { state }) }, { code: 'invalid_state', kind: 'wrong-state', message: new RegExp(`${call}: .*current state: ${state}`) })
    }
  }
})

t.test('a refusal of an Unknown instance says why it is Unknown', async (t) => {
  t.throws(() => { requireState('stop', 'web', { state: 'Unknown', error: 'the VMM does not answer' }) }, { message: /Unknown: the VMM does not answer/ })
})

t.test('no state leads to itself, and each can be left', async (t) => {
  for (const state of STATES) {
    t.notOk(TRANSITIONS[state].includes(state), state)
    t.not(TRANSITIONS[state].length, 0, state)
  }
})

t.test('a wait ends early in the states where nothing moves by itself', async (t) => {
  t.same(STATES.filter(isTerminal), ['Stopped', 'Standby', 'Unknown'])
})
