// The server dies between any two steps of a PATCH: the next one has all of it or nothing, and so has the proxy.
import t, { type Test } from 'tap'
import { startApp } from './app.ts'
import { copyOfData, crashAt, until } from './crash.ts'
import { asked, hostWith, NEXT, REAL, unavailable, type Mediated } from './egress-app.ts'
import { EgressUnavailable } from './scripted-egress.ts'
import type { ScriptedHost } from './scripted.ts'

const FIELDS = {
  env: { SECRET: NEXT },
  ttl: '2h',
  restart_policy: { policy: 'always', backoff: '7s' },
  health_check: { type: 'exec', interval: '1h', exec: { command: ['look'] } },
  auto_standby: { enabled: true, idle_timeout: '9m' },
  wake: 'never'
}
const CHANGED = { expires_at: String, restart_policy: { policy: 'always', backoff: '7s' }, health_check: { type: 'exec' }, auto_standby: { enabled: true }, wake: 'never' }
const NAMES = ['restart_policy', 'health_check', 'auto_standby', 'wake'] as const

async function running (t: Test): Promise<Mediated & { id: string, host: ScriptedHost }> {
  const { host, network, egress } = hostWith(t)
  const app = await startApp(t, { host })
  const id = await app.make('web', asked)
  await app.waitFor('web', 'Running')
  return { ...app, network, egress, id }
}

async function hasNothing (t: Test, { call }: Pick<Mediated, 'call'>): Promise<void> {
  const { body } = await call('GET', '/instances/web')
  t.equal(body['expires_at'], null)
  for (const name of NAMES) t.notHas(body, name)
}

t.test('a PATCH is stored as one change', async (t) => {
  const app = await running(t)
  const { body: before } = await app.call('GET', '/instances/web')
  // What the next server would find before the proxy is told, which is the first step that can be seen.
  let found: Record<string, unknown> = {}
  app.host.onStep = async (step) => {
    if (step !== 'replace') return
    app.host.onStep = undefined
    const after = await startApp(t, { host: app.host, dataDir: await copyOfData(t, app.dataDir) })
    found = (await after.call('GET', '/instances/web')).body
  }
  t.match(await app.call('PATCH', '/instances/web', FIELDS), { status: 200, body: CHANGED })
  t.match(found, CHANGED)
  t.equal(found['created_at'], before['created_at'])
})

for (const step of ['replace', 'replacing'] as const) {
  t.test(`a PATCH that was cut off at "${step}" has happened wholly`, async (t) => {
    const before = await running(t)
    const after = await crashAt(t, before, step, async () => await before.call('PATCH', '/instances/web', FIELDS))
    t.match((await after.call('GET', '/instances/web')).body, { ...CHANGED, state: 'Running' })
    await until(async () => before.egress.valueOf(before.id, 'SECRET') === NEXT)
  })

  t.test(`a PATCH that fails at "${step}" has not happened at all, also for the next server`, async (t) => {
    const app = await running(t)
    app.host.failures.set(step, EgressUnavailable())
    t.match(await app.call('PATCH', '/instances/web', FIELDS), unavailable)
    app.host.failures.clear()
    await hasNothing(t, app)
    await until(async () => app.egress.valueOf(app.id, 'SECRET') === REAL)
    await app.app.stop()
    const next = await startApp(t, { host: app.host, dataDir: app.dataDir })
    await hasNothing(t, next)
    t.equal(app.egress.valueOf(app.id, 'SECRET'), REAL)
  })
}

for (const [state, call] of [['Standby', 'standby'], ['Stopped', 'stop']] as const) {
  t.test(`a PATCH of an instance in ${state} that was cut off is there for its next VM`, async (t) => {
    const before = await running(t)
    await before.call('POST', `/instances/web/${call}`)
    const after = await crashAt(t, before, 'replace', async () => await before.call('PATCH', '/instances/web', { ...FIELDS, restart_policy: { policy: 'never' } }))
    t.match((await after.call('GET', '/instances/web')).body, { state, expires_at: String, wake: 'never' })
    t.match(await after.call('POST', `/instances/web/${state === 'Standby' ? 'restore' : 'start'}`), { status: 200 })
    t.equal(before.egress.valueOf(before.id, 'SECRET'), NEXT)
  })
}
