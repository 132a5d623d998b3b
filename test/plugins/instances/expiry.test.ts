// Instances that are deleted at their time, by whichever server is there.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { bootId } from '../../../core/process/identity.ts'
import { startApp, type TestApp } from './app.ts'
import { startWithCopies } from './copies-app.ts'
import { openDatabase } from './database.ts'
import { until } from './crash.ts'
import { chosen, crashPoints } from './crash-points.ts'

const isGone = async ({ call }: Pick<TestApp, 'call'>, ref: string): Promise<boolean> => (await call('GET', `/instances/${ref}`)).status === 404

/** Sets the clock ahead, or back, for the rest of the test. */
function setClock (t: Test, byMs: number): void {
  const { now } = Date
  t.teardown(() => { Date.now = now })
  Date.now = () => now() + byMs
}

t.test('an instance with a ttl says when it expires, and is wholly gone then', async (t) => {
  const app = await startApp(t)
  const before = Date.now()
  const id = await app.make('web', { ttl: '2s' })
  const expires = Date.parse(String((await app.call('GET', '/instances/web')).body['expires_at']))
  t.ok(expires >= before + 2000 && expires <= Date.now() + 2000)
  await until(async () => await isGone(app, 'web'))
  t.ok(Date.now() >= expires - 50)
  t.equal(app.host.vm.state.status, 'gone')
  t.same(await readdir(join(app.dataDir, 'instances')).then((names) => names.filter((name) => name.includes(id))), [])
  t.equal(app.host.held.size, 0)
})

for (const [path, state] of [['stop', 'Stopped'], ['standby', 'Standby']]) {
  t.test(`one that is ${state} expires, too`, async (t) => {
    const app = await startApp(t)
    await app.make('web')
    await app.waitFor('web', 'Running')
    await app.call('POST', `/instances/web/${path}`)
    t.match(await app.call('PATCH', '/instances/web', { expires_at: new Date(Date.now() + 5000).toISOString() }), { status: 200, body: { state, expires_at: String } })
    await until(async () => await isGone(app, 'web'))
  })
}

t.test('a clock that is set ahead deletes nothing early, and PATCH gives a new time, or none', async (t) => {
  const app = await startApp(t)
  await app.make('web', { ttl: '1h' })
  await app.make('other', { expires_at: new Date(Date.now() + 3_600_000).toISOString() })
  setClock(t, 24 * 3_600_000)
  // Looked at once more, as at each change.
  t.match(await app.call('PATCH', '/instances/web', { ttl: '3h' }), { status: 200 })
  const again = await startApp(t, { host: app.host, dataDir: app.dataDir, server: { dataDir: app.dataDir } }).catch(() => undefined)
  t.equal(again, undefined, 'the folder is in use')
  t.match(await app.call('GET', '/instances/other'), { status: 200, body: { state: 'Running' } })
  t.match(await app.call('PATCH', '/instances/web', { ttl: '0s' }), { status: 200, body: { expires_at: null } })
  t.match(await app.call('GET', '/instances/web'), { body: { expires_at: null } })
})

t.test('the server that starts next deletes what has expired meanwhile, and keeps what has not', async (t) => {
  const first = await startApp(t)
  await first.make('web', { ttl: '400ms' })
  await first.make('other', { ttl: '1h' })
  const { body } = await first.call('GET', '/instances/other')
  await first.app.stop()
  setClock(t, 24 * 3_600_000)
  const second = await startApp(t, { host: first.host, dataDir: first.dataDir })
  await until(async () => await isGone(second, 'web'))
  t.match(await second.call('GET', '/instances/other'), { status: 200, body: { state: 'Running', expires_at: body['expires_at'] } })
})

t.test('a server that dies at any step of a deletion leaves it to the next one', async (t) => {
  const app = await startApp(t)
  await app.make('web', { ttl: '300ms' })
  const points = await crashPoints(t, app.dataDir, async () => { await until(async () => await isGone(app, 'web')) })
  t.ok(points.length > 0)
  for (const { step, dataDir } of chosen(points)) {
    const after = await startApp(t, { host: app.host, dataDir })
    await until(async () => await isGone(after, 'web'))
    t.same((await readdir(join(dataDir, 'instances'))).filter((name) => !name.startsWith('.')), [], step)
    await after.app.stop()
  }
})

t.test('forks and instances made of snapshots do not expire with their source, and a snapshot that is restored changes no time', async (t) => {
  const app = await startWithCopies(t)
  const id = await app.make('web', { ttl: '1h' })
  await app.waitFor('web', 'Running')
  t.match(await app.call('POST', '/instances/web/fork', { name: 'twin', from_running: true }), { status: 201, body: { expires_at: null } })
  const files = app.files('one')
  const copy = await app.copies.capture(id, 'Standby', files)
  t.match(await app.copies.fork(copy, files, { name: 'third' }), { expires_at: null })
  const { body } = await app.call('PATCH', '/instances/web', { ttl: '5h' })
  await app.call('POST', '/instances/web/standby')
  await app.copies.restore(id, copy, files, {})
  t.match(await app.call('GET', '/instances/web'), { body: { expires_at: body['expires_at'] } })
})

t.test('an instance whose deletion fails takes no other time', async (t) => {
  const app = await startApp(t)
  await app.make('web', { ttl: '200ms' })
  const { release } = app.host.images
  const failed = new Promise<void>((resolve) => {
    Object.assign(app.host.images, {
      async release () {
        resolve()
        throw new Error('not now')
      }
    })
  })
  await failed
  t.match(await app.call('PATCH', '/instances/web', { ttl: '1h' }), { status: 409, body: { code: 'instance_expired' } })
  Object.assign(app.host.images, { release })
  t.equal((await app.call('DELETE', '/instances/web')).status, 204)
})

const wrong: readonly [fields: Record<string, unknown>, code: string, message: RegExp][] = [
  [{ ttl: '-1s' }, 'invalid_ttl', /^ttl: "-1s"/],
  [{ ttl: 'soon' }, 'invalid_ttl', /^ttl: "soon" is not a duration/],
  [{ ttl: '9999999h' }, 'invalid_ttl', /at most/],
  [{ ttl: 5 }, 'invalid_request', /^ttl must be a string/],
  [{ expires_at: '2001-01-01T00:00:00Z' }, 'invalid_expires_at', /future/],
  [{ expires_at: 'tomorrow' }, 'invalid_expires_at', /is not a time/],
  [{ expires_at: '2099-13-01T00:00:00Z' }, 'invalid_expires_at', /is not a time/],
  [{ expires_at: '2099-01-01' }, 'invalid_expires_at', /is not a time/],
  [{ expires_at: '2099-02-30T00:00:00Z' }, 'invalid_expires_at', /is not a time/],
  [{ expires_at: '9999-12-31T23:59:59-05:00' }, 'invalid_expires_at', /^expires_at: must be before the year 10000/],
  [{ expires_at: '2099-01-01T00:00:00Z', ttl: '0s' }, 'invalid_expires_at', /not together with ttl/]
]
t.test('a lifetime that is none is refused at create and PATCH alike, and changes nothing', async (t) => {
  const app = await startApp(t)
  await app.make('web', { ttl: '1h' })
  const { body: { expires_at: before } } = await app.call('GET', '/instances/web')
  for (const [fields, code, message] of wrong) {
    t.match(await app.call('POST', '/instances', { name: 'other', image: 'test', ...fields }), { status: 400, body: { code, message } })
    t.match(await app.call('PATCH', '/instances/web', fields), { status: 400, body: { code, message } })
  }
  t.match(await app.call('PATCH', '/instances/web', {}), { status: 400, body: { code: 'invalid_request' } })
  t.match(await app.call('GET', '/instances/web'), { body: { expires_at: before } })
})

t.test('after a boot of the host the expiry of an instance that its restart policy supervises counts by the uptime of this boot', async (t) => {
  const first = await startApp(t)
  const id = await first.make('web', { ttl: '1h', restart_policy: { policy: 'always', backoff: '1h' } })
  await first.waitFor('web', 'Running')
  await first.app.stop()
  await first.host.vm.exit({ exitCode: 1 })
  const lifeIn = async (change?: (life: Record<string, object>) => void): Promise<Record<string, object>> => {
    const database = await openDatabase(first.dataDir)
    try {
      const { life: text } = await database('instances_instances').where({ id }).first('life')
      const life: Record<string, object> = JSON.parse(String(text))
      change?.(life)
      if (change !== undefined) await database('instances_instances').where({ id }).update({ life: JSON.stringify(life) })
      return life
    } finally {
      await database.destroy()
    }
  }
  await lifeIn((life) => { Object.assign(life['expiry'] ?? {}, { boot: 'another', uptimeMs: 5 }) })
  const second = await startApp(t, { host: first.host, dataDir: first.dataDir })
  await until(async () => Object(Object((await second.call('GET', '/instances/web')).body)['restart_status'])['next_attempt_at'] !== null)
  await second.app.stop()
  t.match(await lifeIn(), { expiry: { boot: bootId(), by: 'ttl' }, restart: { next: { boot: bootId() } } })
})
