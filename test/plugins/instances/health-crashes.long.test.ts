// The server dies between any two steps of what follows when a health check turns an instance unhealthy: the next one ends its VM and starts another, as its policy says.
import t, { type Test } from 'tap'
import { startApp, type TestApp } from './app.ts'
import { crashAt, until } from './crash.ts'
import { chosen, crashPoints } from './crash-points.ts'
import { ScriptedHost, type ScriptedVm } from './scripted.ts'

/** Whose first VM fails its check once it is said to, and whose others pass. */
async function running (t: Test, policy: Record<string, unknown> = {}): Promise<TestApp & { first: ScriptedVm, fail (): void }> {
  const host = new ScriptedHost()
  let failing = false
  host.onExec = (session) => { session.end({ exitCode: failing && host.vms.length === 1 ? 1 : 0, signal: 0 }) }
  const app = await startApp(t, { host })
  await app.make('web', { health_check: { type: 'exec', interval: '1s', start_period: '0s', failure_threshold: 1, exec: { command: ['look'] } }, restart_policy: { policy: 'on_failure', backoff: '1s', ...policy } })
  await app.waitFor('web', 'Running')
  return { ...app, first: host.vm, fail () { failing = true } }
}

const view = async ({ call }: Pick<TestApp, 'call'>): Promise<Record<string, unknown>> => (await call('GET', '/instances/web')).body

const isGivenUp = ({ restart_status: status }: Record<string, unknown>): boolean => Object(status)['blocked_reason'] === 'max_attempts_exceeded'

/** Another VM runs, and no third one is started. */
async function restartedOnce (t: Test, app: TestApp, first: ScriptedVm, step: string): Promise<void> {
  await until(async () => (await view(app))['state'] === 'Running' && app.host.vm !== first && first.state.status === 'gone')
  t.match(await view(app), { restart_status: { last_reason: 'health_check_failed', blocked_reason: null } }, step)
}

for (const step of ['shutdown', 'launch', 'launched'] as const) {
  t.test(`a server that dies at "${step}" of the restart of an unhealthy instance leaves it to the next one`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => {
      before.fail()
      await until(async () => before.host.vms.length > 1)
    })
    await restartedOnce(t, after, before.first, step)
    t.equal(Object((await view(after))['restart_status'])['attempts'], step === 'shutdown' ? 1 : 2, 'an attempt that was begun counts')
  })
}

t.test('a server that dies at any change of files on the way from unhealthy to running again leaves it to the next one', async (t) => {
  const app = await running(t)
  const { first } = app
  const points = await crashPoints(t, app.dataDir, async () => {
    app.fail()
    await until(async () => app.host.vms.length > 1 && (await view(app))['state'] === 'Running')
  })
  t.ok(points.length > 0)
  for (const { step, dataDir } of chosen(points)) {
    const count = app.host.vms.length
    const after = await startApp(t, { host: app.host, dataDir })
    await until(async () => (await view(after))['state'] === 'Running')
    t.match(await view(after), { restart_status: { last_reason: 'health_check_failed', blocked_reason: null } }, step)
    t.ok(app.host.vms.length <= count + 1, 'and starts one VM at most')
    t.equal(first.state.status, 'gone')
    await after.app.stop()
  }
})

t.test('a server that dies in the last attempt to start an unhealthy instance does not give it another', async (t) => {
  const before = await running(t, { max_attempts: 1 })
  const after = await crashAt(t, before, 'launch', async () => {
    before.fail()
    await until(async () => isGivenUp(await view(before)))
  })
  await until(async () => isGivenUp(await view(after)))
  t.match(await view(after), { state: 'Stopped', restart_status: { attempts: 1, last_reason: 'health_check_failed' } })
})

t.test('without a policy nothing is ended, whatever the next server finds', async (t) => {
  const before = await running(t, { policy: 'never' })
  before.fail()
  await until(async () => Object((await view(before))['health_status'])['status'] === 'unhealthy')
  await before.app.stop()
  const after = await startApp(t, { host: before.host, dataDir: before.dataDir })
  await until(async () => Object((await view(after))['health_status'])['status'] === 'unhealthy')
  t.match(await view(after), { state: 'Running' })
  t.equal(before.host.vms.length, 1)
})
