import { chmod, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Knex } from 'knex'
import t from 'tap'
import { ensureAdminKey } from '../../../core/auth/admin-key.ts'
import { durableIdOf } from '../../../core/auth/durable-id.ts'
import { createApiKeyRepository } from '../../../core/auth/key-repository.ts'
import { createKeyWatch } from '../../../core/auth/key-watch.ts'
import { createApiKeys } from '../../../core/auth/keys.ts'
import { presentedKeys } from '../../../core/auth/presented.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createLog } from '../../../core/logging/log.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const log = createLog({ level: 'silent' })

interface Clock { now: number, elapsed?: number }

async function keysOn (database: Knex, clock: Clock = { now: Date.now() }): Promise<ReturnType<typeof createApiKeys>> {
  await migratePlugin(database, 'core', new URL('../../../core/db/migrations/', import.meta.url))
  return createApiKeys({ database, log, scopes: ['*', 'image:read', 'instance:write'], clock: () => clock.now, elapsed: () => clock.elapsed ?? clock.now })
}

eachDatabase(t, 'a key is verified, and neither it nor a part of it is stored', async (t, database) => {
  const keys = await keysOn(database)
  const { key, record } = await keys.create({ name: 'ci', scopes: ['image:read', 'instance:write', 'image:read'] })
  t.match(key, new RegExp(`^berth_${record.id}_[A-Za-z0-9_-]{43}$`))
  t.same(await keys.verify(key), { id: record.id, name: 'ci', scopes: ['image:read', 'instance:write'] })
  t.equal(keys.verify(key) instanceof Promise, false, 'a key that was seen lately costs no query')
  for (const wrong of ['', `${key}x`, key.slice(0, -1), 'x'.repeat(1000)]) t.equal(await keys.verify(wrong), undefined)
  for (const junk of ['', 'x'.repeat(257)]) t.equal(keys.verify(junk) instanceof Promise, false, 'what cannot be a key costs no query')
  t.notMatch(JSON.stringify(await database('core_api_keys')), key.slice(-43))
})

t.test('a clock that is put back prolongs neither a revoked key nor one that was lent', async (t) => {
  const database = openDatabase('sqlite::memory:')
  t.teardown(() => database.destroy())
  const clock = { now: Date.now(), elapsed: 0 }
  const [here, there] = [await keysOn(database, clock), await keysOn(database, clock)]
  const { key, record } = await here.create({ name: 'ci', scopes: ['*'] })
  t.ok(await there.verify(key))
  const lent = there.issueEphemeral('lent', ['*'], 4000)
  t.ok(await there.verify(lent.key))
  await here.revoke(record.id)
  clock.now -= 3_600_000
  clock.elapsed += 5000
  t.equal(await there.verify(key), undefined)
  t.equal(await there.verify(lent.key), undefined)
})

eachDatabase(t, 'a revoked key ends at once here, and within 5 s in another process', async (t, database) => {
  const clock = { now: Date.now() }
  const here = await keysOn(database, clock)
  const there = await keysOn(database, clock)
  const { key, record } = await here.create({ name: 'ci', scopes: ['*'] })
  t.ok(await there.verify(key))
  t.ok(await here.verify(key))
  await here.revoke(record.id.slice(0, 12))
  t.equal(await here.verify(key), undefined)
  t.ok(await there.verify(key), 'the other process still remembers it')
  clock.now += 5000
  t.equal(await there.verify(key), undefined)
  await t.rejects(here.revoke(record.id), { code: 'not_found' })
  t.match(await here.list(), [{ name: 'ci', revokedAt: Number }])
})

eachDatabase(t, 'a key ends when it expires, also while it is remembered', async (t, database) => {
  const clock = { now: Date.now() }
  const keys = await keysOn(database, clock)
  const { key } = await keys.create({ name: 'ci', scopes: ['*'], expiresAt: clock.now + 1000 })
  t.ok(await keys.verify(key))
  clock.now += 1000
  t.equal(await keys.verify(key), undefined)
  clock.now += 10_000
  t.equal(await keys.verify(key), undefined)
})

eachDatabase(t, 'the last use is stored in batches, and never goes back', async (t, database) => {
  const clock = { now: 1_790_000_000_000 }
  const here = await keysOn(database, clock)
  const there = await keysOn(database, clock)
  const { key } = await here.create({ name: 'ci', scopes: ['*'] })
  await there.verify(key)
  clock.now += 500
  await here.verify(key)
  t.match(await here.list(), [{ lastUsedAt: null }])
  await here.close()
  await there.close()
  t.match(await here.list(), [{ lastUsedAt: clock.now }])
})

eachDatabase(t, 'names, scopes and expiry are checked', async (t, database) => {
  const keys = await keysOn(database)
  const cases = [
    [{ name: '', scopes: ['*'] }, /^name:/],
    [{ name: 'a', scopes: [] }, /^scopes: at least one/],
    [{ name: 'a', scopes: ['image:eat'] }, /^scopes: image:eat is no scope/],
    [{ name: 'a', scopes: ['*'], expiresAt: 1 }, /^expires_at: must be in the future/]
  ] as const
  for (const [options, message] of cases) await t.rejects(keys.create(options), { code: 'invalid_request', message })
  t.same(await keys.list(), [])
})

eachDatabase(t, 'keys of this process are never stored, and end', async (t, database) => {
  const clock = { now: Date.now() }
  const keys = await keysOn(database, clock)
  const { key, revoke } = keys.issueEphemeral('builder', ['image:write'], 1000)
  const other = keys.issueEphemeral('builder', ['image:write'], 1000)
  t.match(keys.verify(key), { name: 'builder', scopes: ['image:write'] })
  revoke()
  t.equal(await keys.verify(key), undefined)
  clock.now += 1000
  t.equal(await keys.verify(other.key), undefined)
  keys.addProcessKey('a-key-of-the-operator')
  t.match(keys.verify('a-key-of-the-operator'), { scopes: ['*'] })
  t.equal(await keys.current('process'), undefined, 'which key that was is not known')
  const principal = await keys.verify('a-key-of-the-operator')
  const lasting = principal === undefined ? '' : durableIdOf(principal)
  t.match(await keys.current(lasting), { id: 'process' })
  const next = await keysOn(database, clock)
  next.addProcessKey('its-successor')
  t.equal(await next.current(lasting), undefined, 'what one key began is not the next one\'s')
  t.same(await keys.list(), [])
})

t.test('keys that there were before a push had scopes of its own still push, and only they', async (t) => {
  const database = openDatabase('sqlite::memory:')
  t.teardown(() => database.destroy())
  const migrations = new URL('../../../core/db/migrations/', import.meta.url)
  const older = testFolder(t, { '0001-create-api-keys.js': await readFile(new URL('0001-create-api-keys.js', migrations)), '0002-create-idempotency.js': await readFile(new URL('0002-create-idempotency.js', migrations)), 'package.json': '{"type":"module"}' })
  await migratePlugin(database, 'core', pathToFileURL(`${older}/`))
  for (const [id, scopes] of [['reader', '["image:read"]'], ['writer', '["image:read","image:write"]'], ['admin', '["*"]'], ['other', '["instance:read"]']] as const) {
    await database('core_api_keys').insert({ id, name: id, hash: id, scopes, created_at: 1 })
  }
  const keys = await keysOn(database)
  const scopes = Object.fromEntries((await keys.list()).map((record) => [record.id, record.scopes]))
  t.same(scopes, { reader: ['image:read', 'push:read'], writer: ['image:read', 'image:write', 'push:read', 'push:write'], admin: ['*'], other: ['instance:read'] })
})

t.test('whoever serves a key for long hears of its end: at once, or soon when another process has revoked it or its time is over', async (t) => {
  const database = openDatabase('sqlite::memory:')
  t.teardown(() => database.destroy())
  const here = await keysOn(database)
  const { record: { id } } = await here.create({ name: 'a', scopes: ['*'] })
  const principal = { id, name: 'a', scopes: ['*'] }
  const ended: string[] = []
  const release = here.whenEnded(principal, () => { ended.push('taken back') })
  here.whenEnded(principal, () => { throw new Error('a fault of one') })
  here.whenEnded(principal, () => { ended.push('here') })
  release()
  await here.revoke(id)
  t.same(ended, ['here'])
  const made = await here.create({ name: 'owner', scopes: ['*'] })
  const owner = { id: made.record.id, name: 'owner', scopes: ['*'] }
  const token = here.issueEphemeral('token', ['*'], 60_000, undefined, owner)
  here.whenEnded(owner, () => { token.revoke() })
  here.whenEnded(await here.verify(token.key) ?? principal, () => { ended.push('of a token') })
  await here.revoke(owner.id)
  t.same(ended, ['here', 'of a token'], 'once, though the token and its key end')
  ended.pop()
  await here.close()

  let gone: string[] = []
  const asked: string[][] = []
  const watch = createKeyWatch(async (ids) => {
    asked.push([...ids])
    if (asked.length === 1) throw new Error('the database is away')
    return gone
  }, log, 5)
  t.teardown(() => { watch.close() })
  for (const id of ['b', 'c']) watch.add(id, () => { ended.push(id) })
  await eventually('it was asked', () => asked.length > 2)
  t.same(ended, ['here'])
  gone = ['b']
  await eventually('the end is noticed', () => ended.length === 2)
  await eventually('the other one is still watched', () => asked.at(-1)?.join() === 'c')
  t.same(ended, ['here', 'b'])
})

eachDatabase(t, 'keys that are revoked or whose time is over are found among many', async (t, database) => {
  const clock = { now: 1_790_000_000_000 }
  await keysOn(database, clock)
  const repository = createApiKeyRepository(database)
  const [lasting, revoked, expired] = [await repositoryKey('lasting', null), await repositoryKey('revoked', null), await repositoryKey('expired', clock.now)]
  async function repositoryKey (id: string, expiresAt: number | null): Promise<string> {
    await repository.insert({ id, name: id, scopes: ['*'], repositories: null, createdBy: null, createdAt: 1, expiresAt, revokedAt: null, lastUsedAt: null }, id)
    return id
  }
  await repository.revoke(revoked, 2)
  const many = Array.from({ length: 1200 }, (_, index) => `none-${index}`)
  t.same((await repository.ended([lasting, ...many, revoked, expired], clock.now)).sort(), ['expired', 'revoked'])
  t.same(await repository.ended([lasting, expired], clock.now - 1), [])
})

t.test('a scope is held by name or by full access', async (t) => {
  const database = openDatabase(`sqlite:${join(testFolder(t), 'x.db')}`)
  t.teardown(() => database.destroy())
  const keys = await keysOn(database)
  t.equal(keys.allows({ id: 'a', name: 'a', scopes: ['image:read'] }, 'image:read'), true)
  t.equal(keys.allows({ id: 'a', name: 'a', scopes: ['image:read'] }, 'image:write'), false)
  t.equal(keys.allows({ id: 'a', name: 'a', scopes: ['*'] }, 'image:write'), true)
})

t.test('the admin key is made once, private, and survives a start that was killed in between', async (t) => {
  const folder = testFolder(t)
  const database = openDatabase(`sqlite:${join(folder, 'x.db')}`)
  t.teardown(() => database.destroy())
  const keys = await keysOn(database)
  const first = await ensureAdminKey(keys, folder)
  t.match(first, { path: join(folder, 'keys/admin.key'), created: true })
  t.equal((await stat(first.path)).mode & 0o777, 0o600)
  const key = (await readFile(first.path, 'utf8')).trim()
  t.match(await keys.verify(key), { name: 'admin', scopes: ['*'] })
  t.match(await ensureAdminKey(keys, folder), { created: false })
  t.equal((await keys.list()).length, 1)

  await database('core_api_keys').delete()
  await ensureAdminKey(keys, folder)
  t.match(await (await keysOn(database)).verify(key), { name: 'admin' }, 'the file was written, the row was not')
})

t.test('an admin key that was revoked or put away is not made again', async (t) => {
  const folder = testFolder(t)
  const database = openDatabase(`sqlite:${join(folder, 'x.db')}`)
  t.teardown(() => database.destroy())
  const keys = await keysOn(database)
  const { path } = await ensureAdminKey(keys, folder)
  const key = (await readFile(path, 'utf8')).trim()
  await rm(path)
  t.match(await ensureAdminKey(keys, folder), { created: false })
  await t.rejects(stat(path), { code: 'ENOENT' })
  await writeFile(path, key)
  await keys.revoke((await keys.list())[0]?.id ?? '')
  await ensureAdminKey(keys, folder)
  t.equal(await keys.verify(key), undefined)
})

t.test('an admin key file with something else in it stops the start', async (t) => {
  const folder = testFolder(t)
  await mkdir(join(folder, 'keys'))
  await writeFile(join(folder, 'keys/admin.key'), 'junk')
  await chmod(join(folder, 'keys/admin.key'), 0o600)
  const database = openDatabase(`sqlite:${join(folder, 'x.db')}`)
  t.teardown(() => database.destroy())
  await t.rejects(ensureAdminKey(await keysOn(database), folder), /admin\.key holds no API key/)
})

t.test('registries may present a key as bearer, as password or as user', async (t) => {
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
  t.same(presentedKeys('Bearer abc'), ['abc'])
  t.same(presentedKeys('bearer  abc '), ['abc'])
  t.same(presentedKeys(basic('user:pass:word')), ['pass:word', 'user'])
  t.same(presentedKeys(basic('key:')), ['key'])
  for (const wrong of ['', 'Bearer', 'Bearer a b', 'Digest x', basic('no colon'), 'Basic !!']) t.same(presentedKeys(wrong), [], wrong)
})
