// Instances that are started again when their program has ended by itself.
import t, { type Test } from 'tap'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { startAway } from './away.ts'
import { startWithCopies } from './copies-app.ts'
import { copyOfData, crashAt, until } from './crash.ts'
import { chosen, crashPoints } from './crash-points.ts'
import { ScriptedHost } from './scripted.ts'

const policy = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({ restart_policy: { policy: 'always', backoff: '1s', ...fields } })

async function running (t: Test, fields: Record<string, unknown>, options: StartOptions = {}): Promise<TestApp & { id: string }> {
  const app = await startApp(t, { host: new ScriptedHost(), ...options })
  const id = await app.make('web', fields)
  await app.waitFor('web', 'Running')
  return { ...app, id }
}

const statusOf = async ({ call }: Pick<TestApp, 'call'>): Promise<Record<string, unknown>> => Object((await call('GET', '/instances/web')).body['restart_status'])

/** A wait of the API would end in Stopped. */
const runs = async ({ call }: Pick<TestApp, 'call'>): Promise<void> => { await until(async () => (await call('GET', '/instances/web')).body['state'] === 'Running') }

/** Its program ends by itself, and it is `Running` again with another VM. */
async function again (app: TestApp, exitCode: number): Promise<void> {
  const { vm, vms } = app.host
  const count = vms.length
  await vm.exit({ exitCode })
  await until(async () => app.host.vms.length > count)
  await runs(app)
}

t.test('the policy and what became of it are shown, with the defaults', async (t) => {
  const app = await running(t, { restart_policy: { policy: 'on_failure' } })
  t.match((await app.call('GET', '/instances/web')).body, {
    restart_policy: { policy: 'on_failure', backoff: '5s', max_attempts: 0, stable_after: '10m' },
    restart_status: { attempts: 0, blocked_reason: null, last_attempt_at: null, last_reason: null, next_attempt_at: null }
  })
  const plain = await app.make('plain')
  t.notOk('restart_policy' in (await app.call('GET', `/instances/${plain}`)).body)
})

t.test('a program that has ended is started again, after the backoff, and the attempts count', async (t) => {
  const app = await running(t, policy())
  const { vm } = app.host
  await vm.exit({ exitCode: 0 })
  await until(async () => (await statusOf(app))['next_attempt_at'] !== null)
  const { next_attempt_at: next } = await statusOf(app)
  const { body: { stopped_at: stopped } } = await app.call('GET', '/instances/web')
  t.ok(Date.parse(String(next)) >= Date.parse(String(stopped)) + 1000)
  await runs(app)
  t.match(await statusOf(app), { attempts: 1, last_attempt_at: String, next_attempt_at: null })
  t.not(app.host.vm, vm)
  await again(app, 1)
  t.match(await statusOf(app), { attempts: 2 })
})

t.test('on_failure starts again what has failed, and nothing else; never does nothing', async (t) => {
  const app = await running(t, policy({ policy: 'on_failure' }))
  await again(app, 3)
  await app.host.vm.exit({ exitCode: 0 })
  await app.waitFor('web', 'Stopped')
  const never = await running(t, policy({ policy: 'never' }))
  await never.host.vm.exit({ exitCode: 1 })
  await never.waitFor('web', 'Stopped')
  await new Promise((resolve) => setTimeout(resolve, 1500))
  for (const one of [app, never]) t.match(await one.call('GET', '/instances/web'), { body: { state: 'Stopped', restart_status: { next_attempt_at: null, blocked_reason: null } } })
})

t.test('it is given up after max_attempts, until it is started by hand', async (t) => {
  const app = await running(t, policy({ max_attempts: 1 }))
  await again(app, 1)
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['blocked_reason'] === 'max_attempts_exceeded')
  t.match(await app.call('POST', '/instances/web/start'), { status: 200, body: { restart_status: { attempts: 0, blocked_reason: null } } })
  await app.waitFor('web', 'Running')
  await again(app, 1)
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['blocked_reason'] === 'max_attempts_exceeded')
  t.match(await app.call('PATCH', '/instances/web', policy()), { status: 200 }, 'another policy begins anew')
  await runs(app)
})

t.test('a run that was stable begins the count anew', async (t) => {
  const app = await running(t, policy({ max_attempts: 1, stable_after: '0s' }))
  await again(app, 1)
  await until(async () => (await statusOf(app))['attempts'] === 0)
  await again(app, 1)
  t.match(await statusOf(app), { blocked_reason: null })
})

t.test('a start that fails counts as an attempt', async (t) => {
  const app = await running(t, policy({ max_attempts: 2 }))
  app.host.launchError = new Error('not now')
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['blocked_reason'] === 'max_attempts_exceeded')
  t.match(await statusOf(app), { attempts: 2 })
})

t.test('what is stopped by hand stays stopped, also by the next server, and also while it waits to be started', async (t) => {
  const app = await running(t, policy())
  t.match(await app.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped', restart_status: { blocked_reason: 'manual_stop' } } })
  await app.call('POST', '/instances/web/start')
  await app.waitFor('web', 'Running')
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['next_attempt_at'] !== null)
  t.match(await app.call('POST', '/instances/web/stop'), { status: 200, body: { state: 'Stopped', restart_status: { blocked_reason: 'manual_stop', next_attempt_at: null } } })
  await app.app.stop()
  const next = await startApp(t, { host: app.host, dataDir: app.dataDir })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  t.match(await next.call('GET', '/instances/web'), { body: { state: 'Stopped', restart_status: { blocked_reason: 'manual_stop' } } })
  t.equal(app.host.vms.length, 2)
})

t.test('a policy that comes after a stop by hand starts nothing, and one that comes after a failure does', async (t) => {
  const app = await running(t, {})
  await app.call('POST', '/instances/web/stop')
  t.match(await app.call('PATCH', '/instances/web', policy()), { status: 200, body: { restart_status: { blocked_reason: 'manual_stop' } } })
  const other = await running(t, {})
  await other.host.vm.exit({ exitCode: 1 })
  await other.waitFor('web', 'Stopped')
  t.match(await other.call('PATCH', '/instances/web', policy()), { status: 200 })
  await runs(other)
})

t.test('a server that starts later starts what ended meanwhile, and what the one before took along', async (t) => {
  const first = await running(t, policy())
  await first.app.stop()
  await first.host.vm.exit({ exitCode: 1 })
  const second = await startApp(t, { host: first.host, dataDir: first.dataDir, server: { stopInstancesOnExit: true } })
  await runs(second)
  t.match(await statusOf(second), { attempts: 1 })
  await second.app.stop()
  t.equal(first.host.vm.state.status, 'gone')
  const third = await startApp(t, { host: first.host, dataDir: first.dataDir })
  await runs(third)
  t.match(await statusOf(third), { attempts: 2, blocked_reason: null })
})

t.test('standby is no end, and a fork has the policy and none of the history', async (t) => {
  const app = await startWithCopies(t)
  const id = await app.make('web', policy())
  await app.waitFor('web', 'Running')
  await again(app, 1)
  await app.call('POST', '/instances/web/standby')
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', target_state: 'Stopped' }), { status: 201, body: { restart_policy: { policy: 'always' }, restart_status: { attempts: 0 } } })
  const files = app.files('one')
  const copy = await app.copies.capture(id, 'Standby', files)
  t.match(await app.copies.fork(copy, files, { name: 'third', targetState: 'Stopped' }), { restart_policy: { policy: 'always' }, restart_status: { attempts: 0 } })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  for (const [ref, state] of [['web', 'Standby'], ['twin', 'Stopped'], ['third', 'Stopped']]) t.match(await app.call('GET', `/instances/${ref}`), { body: { state } })
  await app.call('POST', '/instances/web/restore')
  await again(app, 1)
  t.match(await statusOf(app), { attempts: 2 })
})

t.test('a database that is away as a VM ends does not keep its instance from being started again', async (t) => {
  const app = await startAway(t)
  await app.make('web', policy())
  await app.waitFor('web', 'Running')
  app.go('not done', 'not done')
  await again(app, 1)
  t.match(await statusOf(app), { attempts: 1, next_attempt_at: null, blocked_reason: null })
})

t.test('a database that is away as an attempt is due does not keep an instance from being started again', async (t) => {
  const app = await startAway(t)
  await app.make('web', policy())
  await app.waitFor('web', 'Running')
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['next_attempt_at'] !== null)
  app.go('not done')
  await until(async () => app.host.vms.length > 1)
  await runs(app)
  t.match(await statusOf(app), { attempts: 1, next_attempt_at: null, blocked_reason: null })
})

for (const step of ['launch', 'launched'] as const) {
  t.test(`a server that dies at "${step}" of an attempt leaves it to the next one`, async (t) => {
    const before = await running(t, policy({ max_attempts: 5 }))
    const after = await crashAt(t, before, step, async () => {
      await before.host.vm.exit({ exitCode: 1 })
      await until(async () => before.host.vms.length > 1)
    })
    await runs(after)
    t.match(await statusOf(after), { attempts: 2, blocked_reason: null })
  })
}

t.test('a server that dies in the backoff leaves the attempt to the next one, and it comes when it was to come', async (t) => {
  const app = await running(t, policy({ backoff: '3s' }))
  await app.host.vm.exit({ exitCode: 1 })
  await until(async () => (await statusOf(app))['next_attempt_at'] !== null)
  const due = String((await statusOf(app))['next_attempt_at'])
  const dataDir = await copyOfData(t, app.dataDir)
  await app.app.stop()
  const after = await startApp(t, { host: app.host, dataDir })
  // It may be due by now.
  const { next_attempt_at: next } = await statusOf(after)
  t.ok(next === due || next === null, `${String(next)}, and it was to be ${due}`)
  await runs(after)
  t.ok(Date.now() >= Date.parse(due), 'not before')
  t.match(await statusOf(after), { attempts: 1, next_attempt_at: null })
})

t.test('a server that dies at any step of a stop by hand leaves its end to the next one', async (t) => {
  const app = await running(t, policy())
  const { vm } = app.host
  const points = await crashPoints(t, app.dataDir, async () => { await app.call('POST', '/instances/web/stop') })
  for (const { step, dataDir } of chosen(points)) {
    // The guest as it was before it heard of the stop.
    vm.set({ status: 'running' })
    const after = await startApp(t, { host: app.host, dataDir })
    if ((await after.call('GET', '/instances/web')).body['state'] === 'Running' && (await statusOf(after))['blocked_reason'] === null) continue
    await after.waitFor('web', 'Stopped')
    t.match(await statusOf(after), { blocked_reason: 'manual_stop' }, step)
    await after.app.stop()
  }
})

const wrong: readonly [Record<string, unknown>, string, RegExp][] = [
  [{ backoff: 'soon' }, 'invalid_restart_policy', /^restart_policy.backoff: "soon"/],
  [{ backoff: '10ms' }, 'invalid_restart_policy', /^restart_policy.backoff: must be 1s to 24h/],
  [{ stable_after: '25h' }, 'invalid_restart_policy', /^restart_policy.stable_after: must be at most 24h/],
  [{ policy: 'sometimes' }, 'invalid_request', /^restart_policy.policy/],
  [{ max_attempts: -1 }, 'invalid_request', /^restart_policy.max_attempts/],
  [{ other: 1 }, 'invalid_request', /restart_policy.other/]
]
t.test('a policy that is none is refused at create and PATCH alike', async (t) => {
  const app = await running(t, {})
  for (const [fields, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', ...policy(fields) }), { status: 400, body: { code, message } })
    t.match(await app.call('PATCH', '/instances/web', policy(fields)), { status: 400, body: { code, message } })
  }
})
