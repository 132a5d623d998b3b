// Other values for credentials while an instance runs, and what is told of its way out.
import t from 'tap'
import { Type } from 'typebox'
import type { ApiKeys } from '../../../core/contracts/services.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { startApp } from './app.ts'
import { startWithCopies } from './copies-app.ts'
import { until } from './crash.ts'
import { asked, enforced, hostWith, NEXT, REAL, running, start, unavailable } from './egress-app.ts'
import { EgressUnavailable } from './scripted-egress.ts'

const WORST = 'refused-value-1a2b3c'

t.test('other values are taken while an instance runs, and its guest notices nothing', async (t) => {
  const app = await running(t)
  const { call, egress, host, id } = app
  const { body } = await call('GET', '/instances/web')
  t.match(await call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), { status: 200, body })
  t.equal(egress.valueOf(id, 'SECRET'), NEXT)
  t.notMatch(JSON.stringify(host.vm.workload), /value/)
  await call('POST', '/instances/web/stop')
  await call('POST', '/instances/web/start')
  t.equal(egress.valueOf(id, 'SECRET'), NEXT, 'it is stored')
})

const wrongUpdates: readonly [name: string, body: unknown, message: RegExp][] = [
  ['no body', undefined, /body/],
  ['nothing', {}, /at least 1/],
  ['no variable', { env: {} }, /^env must have at least 1/],
  ['a variable that is no text', { env: { SECRET: 5 } }, /^env.SECRET must be a string/],
  ['a null', { env: { SECRET: null } }, /^env.SECRET must be a string/],
  ['a value with NUL', { env: { SECRET: `${WORST}\0` } }, /^env.SECRET must match/],
  ['a variable that no credential takes its value from', { env: { PLAIN: WORST } }, /^env.PLAIN/],
  ['the credential itself', { env: { TOKEN: WORST } }, /^env.TOKEN/],
  ['one of two that is none', { env: { SECRET: WORST, OTHER: WORST } }, /^env.OTHER/],
  ['a name that is none', { env: { 'A-B': WORST } }, /^env: "A-B"/],
  ['a name that every object has', { env: { constructor: WORST } }, /^env.constructor/],
  ...['credentials', 'network'].map((field): [string, unknown, RegExp] => [field, { env: { SECRET: WORST }, [field]: {} }, new RegExp(`^${field} is not a known field`)])
]
t.test('a wrong update is refused, and changes nothing', async (t) => {
  const { call, egress, id } = await running(t)
  for (const [name, body, message] of wrongUpdates) {
    const answer = await call('PATCH', '/instances/web', body)
    t.match(answer, { status: 400, body: { code: 'invalid_request', message } }, name)
    t.notMatch(answer.text, WORST, name)
  }
  t.equal(egress.valueOf(id, 'SECRET'), REAL)
  t.notOk(egress.calls.some((each) => each.startsWith('replace')))
})

t.test('an instance without credentials has none to update', async (t) => {
  const app = await start(t)
  await app.make('web')
  await app.waitFor('web', 'Running')
  t.match(await app.call('PATCH', '/instances/web', { env: { PATH: '/x' } }), { status: 400, body: { code: 'invalid_request', message: /^env.PATH: no credential/ } })
  t.equal((await app.call('PATCH', '/instances/nobody', { env: { PATH: '/x' } })).status, 404)
})

for (const [path, back] of [['stop', 'start'], ['standby', 'restore']]) {
  t.test(`a value that was replaced after ${path} is not there any more after ${back}`, async (t) => {
    const app = await running(t)
    const { call, egress, id } = app
    await call('POST', `/instances/web/${path}`)
    t.match(await call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), { status: 200 })
    t.same(enforced(app), [], 'nobody has a way out meanwhile')
    t.match(await call('POST', `/instances/web/${back}`), { status: 200 })
    t.equal(egress.valueOf(id, 'SECRET'), NEXT)
  })
}

t.test('an instance whose guest still boots can be updated', async (t) => {
  const { host, egress } = hostWith(t)
  host.behaviour = 'boot-only'
  const app = await startApp(t, { host })
  const id = await app.make('web', asked)
  t.match(await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), { status: 200, body: { state: 'Initializing' } })
  t.equal(egress.valueOf(id, 'SECRET'), NEXT)
})

for (const step of ['replace', 'replacing'] as const) {
  t.test(`an update that fails at "${step}" puts back what was before`, async (t) => {
    const app = await running(t)
    const { call, egress, host, id } = app
    host.failures.set(step, EgressUnavailable())
    t.match(await call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), unavailable)
    host.failures.clear()
    // Behind the answer, as soon as the proxy answers again.
    await until(async () => egress.calls.filter((each) => each === `replace ${id}`).length > 1 && egress.valueOf(id, 'SECRET') === REAL)
    await call('POST', '/instances/web/stop')
    await call('POST', '/instances/web/start')
    t.equal(egress.valueOf(id, 'SECRET'), REAL, 'it is not stored')
  })
}

t.test('a policy that is brought back does not undo a later update', async (t) => {
  const app = await running(t)
  const { call, egress, host, id } = app
  let failures = 1
  host.onStep = (step) => { if (step === 'replacing' && failures-- > 0) throw EgressUnavailable() }
  const [first, second] = await Promise.all([call('PATCH', '/instances/web', { env: { SECRET: WORST } }), call('PATCH', '/instances/web', { env: { SECRET: NEXT } })])
  t.match([first, second], [unavailable, { status: 200 }])
  await until(async () => egress.calls.filter((each) => each === `replace ${id}`).length === 3)
  t.equal(egress.valueOf(id, 'SECRET'), NEXT)
})

t.test('an update of an instance whose VM ends meanwhile leaves no policy', async (t) => {
  const app = await running(t)
  const { call, egress, host } = app
  host.onStep = async (step) => {
    if (step !== 'replace') return
    host.onStep = undefined
    await host.vm.exit()
    await until(async () => egress.calls.some((each) => each.startsWith('lift')))
  }
  await call('PATCH', '/instances/web', { env: { SECRET: NEXT } })
  await app.waitFor('web', 'Stopped')
  t.same(enforced(app), [])
})

t.test('an update and other operations of an instance come one after the other', async (t) => {
  const app = await running(t)
  const { call, egress, host, id } = app
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  const steps: string[] = []
  host.onStep = async (step) => {
    steps.push(step)
    if (step === 'replace') await held
  }
  const updated = call('PATCH', '/instances/web', { env: { SECRET: NEXT } })
  await until(async () => steps.includes('replace'))
  const rested = call('POST', '/instances/web/standby')
  // A whole request, which finds the lock taken before it.
  await call('GET', '/instances/web')
  t.same(steps, ['replace'])
  go()
  t.match([await updated, await rested], [{ status: 200 }, { status: 200, body: { state: 'Standby' } }])
  t.match(await call('POST', '/instances/web/restore'), { status: 200 })
  t.equal(egress.valueOf(id, 'SECRET'), NEXT)
})

t.test('what the proxy has written down is told in pages', async (t) => {
  const app = await running(t)
  const { call, egress, id } = app
  const entry = { time: '2026-01-31T12:00:00.000Z', vm: id, revision: 3, protocol: 'h2', host: 'api.example.com', port: 443, method: 'GET', path: '/v1', status: 200, injected: ['TOKEN'], bytesIn: 10, bytesOut: 20, durationMs: 1.5 } as const
  egress.entries.push(...[1, 2, 4].map((seq) => ({ ...entry, seq })), { ...entry, seq: 3, vm: 'other' })
  const told = { seq: 1, time: entry.time, revision: 3, protocol: 'h2', host: 'api.example.com', port: 443, method: 'GET', path: '/v1', status: 200, injected: ['TOKEN'], bytes_in: 10, bytes_out: 20, duration_ms: 1.5 }
  t.same((await call('GET', '/instances/web/egress?limit=2')).body, { mode: 'all', credentials: ['TOKEN'], entries: [told, { ...told, seq: 2 }], next: 2 })
  t.same((await call('GET', `/instances/${id}/egress?after=2`)).body, { mode: 'all', credentials: ['TOKEN'], entries: [{ ...told, seq: 4 }], next: 4 })
  await app.make('direct')
  t.same((await call('GET', '/instances/direct/egress')).body, { mode: 'none', credentials: [], entries: [], next: 0 })
  t.equal((await call('GET', '/instances/nobody/egress')).status, 404)
  for (const query of ['after=-1', 'after=x', 'limit=0', 'limit=1001', 'before=1']) t.match(await call('GET', `/instances/web/egress?${query}`), { status: 400, body: { code: 'invalid_request' } }, query)
})

t.test('reading needs instance:read, and updating instance:write', async (t) => {
  let keys: ApiKeys | undefined
  const peek = definePlugin({
    manifest: { id: 'peek', provides: [], requires: ['apiKeys'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ apiKeys }) => ({ async start () { keys = apiKeys } })
  })
  const app = await running(t, {}, { plugins: [peek] })
  const key = (scope: string): Record<string, string> => ({ authorization: `Bearer ${keys?.issueEphemeral('test', [scope], 60_000).key ?? ''}` })
  t.equal((await app.call('GET', '/instances/web/egress', undefined, key('instance:read'))).status, 200)
  t.equal((await app.call('GET', '/instances/web/egress', undefined, key('image:read'))).status, 403)
  t.equal((await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }, key('instance:read'))).status, 403)
  t.equal((await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }, key('instance:write'))).status, 200)
})

t.test('the API document tells of both routes, and of the second only with the plugin', async (t) => {
  const app = await start(t)
  const { paths } = Object((await app.call('GET', '/openapi.json')).body)
  t.ok(paths['/instances/{id}'].patch.requestBody)
  t.ok(paths['/instances/{id}/egress'].get.responses['200'])
  const without = await startApp(t)
  t.notOk(Object((await without.call('GET', '/openapi.json')).body).paths['/instances/{id}/egress'])
})

t.test('neither a fork of a copy nor a restore brings back a value that was replaced since, while the source is there', async (t) => {
  const { host, egress } = hostWith(t)
  const app = await startWithCopies(t, { host })
  const id = await app.make('web', asked)
  await app.waitFor('web', 'Running')
  const copy = await app.copies.capture('web', 'Standby', app.files('one'))
  t.notMatch(JSON.stringify(copy), REAL)
  t.match(await app.call('PATCH', '/instances/web', { env: { SECRET: NEXT } }), { status: 200 })
  await app.copies.fork(copy, app.files('one'), { name: 'twin' })
  const twin = String((await app.call('GET', '/instances/twin')).body['id'])
  t.equal(egress.valueOf(twin, 'SECRET'), NEXT, 'an instance made of a copy has the value that the source has now')
  await app.call('POST', '/instances/web/standby')
  await app.copies.restore('web', copy, app.files('one'), {})
  t.equal(egress.valueOf(id, 'SECRET'), NEXT)
  t.same(enforced({ ...app, network: host.connect(), egress }), [id, twin].sort())
  await app.call('DELETE', '/instances/web')
  await app.copies.fork(copy, app.files('one'), { name: 'late' })
  t.equal(egress.valueOf(String((await app.call('GET', '/instances/late')).body['id']), 'SECRET'), REAL, 'a copy that is all there is has its own')
})
