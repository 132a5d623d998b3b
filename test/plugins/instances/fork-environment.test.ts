// Other variables for a fork than its source has: what its program, its commands and the proxy get of them.
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import type { TestApp } from './app.ts'
import { sourceIn, startWithCopies, type CopiesApp } from './copies-app.ts'
import type { ScriptedEgress } from './scripted-egress.ts'
import { asked, hostWith, NEXT, REAL } from './egress-app.ts'

const states = ['Running', 'Standby', 'Stopped'] as const

for (const state of states) {
  t.test(`a fork of a ${state} instance has its own values of what it names, and the others of its source`, async (t) => {
    const app = await sourceIn(t, state)
    const { call, host } = app
    const { status, body } = await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Running', env: { A: 'mine', NEW: 'too' } })
    t.match({ status, env: body['env'] }, { status: 201, env: { A: 'mine', NEW: 'too' } })
    t.same((await call('GET', '/instances/web')).body['env'], { A: 'b' }, 'the source keeps its own')
    if (state === 'Stopped') t.match(host.vm.workload?.env, { A: 'mine', NEW: 'too' }, 'its program is started with it')
    t.match(await commandEnv(app, 'twin'), { A: 'mine', NEW: 'too' })
  })
}

t.test('what a fork has been given stays over a stop and a start, and goes on to its own forks', async (t) => {
  const { call, host, waitFor } = await sourceIn(t, 'Standby')
  await call('POST', '/instances/web/fork', { name: 'twin', target_state: 'Running', env: { A: 'mine' } })
  await waitFor('twin', 'Running')
  t.equal((await call('POST', '/instances/twin/stop')).status, 200)
  t.equal((await call('POST', '/instances/twin/start')).status, 200)
  t.match(host.vm.workload?.env, { A: 'mine' })
  t.match(await call('POST', '/instances/twin/fork', { name: 'third', from_running: true, env: { B: 'third' } }), { status: 201, body: { env: { A: 'mine', B: 'third' } } })
})

t.test('what is made of a copy has its own values, too', async (t) => {
  const { call, copies, files } = await sourceIn(t, 'Running')
  const copy = await copies.capture('web', 'Standby', files('one'))
  t.match(await copies.fork(copy, files('one'), { name: 'twin', env: { A: 'mine' } }), { name: 'twin', env: { A: 'mine' } })
  t.match(await copies.fork(copy, files('one'), { name: 'third' }), { name: 'third', env: { A: 'b' } })
  t.match((await call('GET', '/instances/web')).body['env'], { A: 'b' })
})

for (const state of states) {
  t.test(`the credential of a fork of a ${state} instance has another value from its first moment, and its source the one that it had`, async (t) => {
    const { call, egress, id } = await mediated(t, state)
    const { status, body } = await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, target_state: 'Running', env: { SECRET: NEXT, PLAIN: 'y' } })
    t.equal(status, 201)
    t.same(body['env'], { PLAIN: 'y', TOKEN: 'mock-TOKEN' }, 'and nobody is told of it')
    t.equal(egress.valueOf(String(body['id']), 'SECRET'), NEXT)
    t.notOk(egress.calls.some((each) => each.startsWith('replace')), 'it never had another')
    if (state === 'Running') t.equal(egress.valueOf(id, 'SECRET'), REAL)
  })
}

t.test('the credential of what is made of a copy has the value of the request, else the present one of the source', async (t) => {
  const { call, copies, files, egress } = await mediated(t, 'Running')
  const copy = await copies.capture('web', 'Standby', files('one'))
  await call('PATCH', '/instances/web', { env: { SECRET: 'present-value' } })
  for (const [name, env, value] of [['asked', { SECRET: NEXT }, NEXT], ['present', undefined, 'present-value']] as const) {
    await copies.fork(copy, files('one'), { name, ...(env === undefined ? {} : { env }) })
    t.equal(egress.valueOf(String((await call('GET', `/instances/${name}`)).body['id']), 'SECRET'), value)
  }
})

const wrong: readonly [name: string, env: unknown, message: RegExp][] = [
  ['no object', 'A=b', /^env must be an object/],
  ['a value that is no text', { A: 5 }, /^env.A must be a string/],
  ['a value with NUL', { A: 'x\0' }, /^env.A must match/],
  ['a name that is none', { 'A-B': 'x' }, /^env: "A-B" is no name/],
  ['more than fits', Object.fromEntries(Array.from({ length: 3 }, (_, index) => [`V${index}`, 'x'.repeat(100_000)])), /^env: all variables together/],
  ['the mock of a credential', { TOKEN: 'x' }, /^env.TOKEN: /]
]
t.test('a wrong environment is refused, and no fork is made', async (t) => {
  const { call } = await mediated(t, 'Stopped')
  for (const [name, env, message] of wrong) t.match(await call('POST', '/instances/web/fork', { name: 'twin', env }), { status: 400, body: { code: 'invalid_request', message } }, name)
  t.equal((await call('GET', '/instances/twin')).status, 404)
})

t.test('variables that are too many only together with those of the source are refused', async (t) => {
  const { call, make, waitFor } = await startWithCopies(t)
  await make('web', { env: { ONE: 'x'.repeat(30_000), TWO: 'x'.repeat(25_000) } })
  await waitFor('web', 'Running')
  t.match(await call('POST', '/instances/web/fork', { name: 'twin', from_running: true, env: { THREE: 'x'.repeat(10_000) } }), { status: 400, body: { message: /^env: .* take \d+ bytes; at most \d+ fit/ } })
})

async function mediated (t: Test, state: typeof states[number]): Promise<CopiesApp & { readonly egress: ScriptedEgress, readonly id: string }> {
  const { host, egress } = hostWith(t)
  const app = await startWithCopies(t, { host })
  const id = await app.make('web', asked)
  await app.waitFor('web', 'Running')
  if (state !== 'Running') await app.call('POST', `/instances/web/${state === 'Standby' ? 'standby' : 'stop'}`)
  return { ...app, egress, id }
}

/** What a command in the guest is given: here that of a health check. */
async function commandEnv ({ call, host, waitFor }: Pick<TestApp, 'call' | 'host' | 'waitFor'>, name: string): Promise<unknown> {
  await waitFor(name, 'Running')
  const { vm } = host
  await call('PATCH', `/instances/${name}`, { health_check: { type: 'exec', interval: '1s', exec: { command: ['look'] } } })
  await eventually('a command in the guest', () => vm.execs.length > 0)
  return vm.execs[0]?.spec.env
}
