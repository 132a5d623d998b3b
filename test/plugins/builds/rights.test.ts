// Who may ask for what, and what a build may use of the server's secrets.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { idOfKey } from '../../../core/auth/key-text.ts'
import { createApiKeys } from '../../../core/auth/keys.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { temporaryFolder } from '../../core/bare-app.ts'
import { SOURCE, startBuilds, type BuildsApp } from './app.ts'

async function keyWith (t: Test, app: BuildsApp, ...scopes: string[]): Promise<Record<string, string>> {
  const database = openDatabase(`sqlite:${join(app.dataDir, 'berth.db')}`)
  const keys = createApiKeys({ database, log: app.app.log, scopes: ['build:read', 'build:write', 'build:delete', 'build:admin', 'image:read', 'image:write'] })
  t.teardown(async () => { await database.destroy() })
  const { key } = await keys.create({ name: scopes.join(), scopes })
  return { authorization: `Bearer ${key}` }
}

t.test('the shared cache is written only with a scope of its own', async (t) => {
  const app = await startBuilds(t)
  app.runner.onRun = (run) => { run.finish() }
  const fields = { source: SOURCE, global_cache_key: 'node', is_admin_build: 'true' }
  t.match(await app.post(fields, await keyWith(t, app, 'build:write', 'build:delete', 'build:read', 'image:write')), { status: 403, body: { code: 'Forbidden', message: 'missing required scope: build:admin' } })
  t.equal((await app.post(fields, await keyWith(t, app, 'build:write', 'build:admin'))).status, 202)
  t.equal((await app.post(fields)).status, 202, 'a key that may everything may this')
  const { status, body } = await app.post({ ...fields, is_admin_build: 'false' }, await keyWith(t, app, 'build:write'))
  t.equal(status, 202)
  t.match((await app.runner.begun(String(body['id']))).job, { globalCacheKey: 'node', writesGlobalCache: false })
})

t.test('a build may read the registry as its key may', async (t) => {
  const app = await startBuilds(t)
  for (const [scopes, may] of [[['build:write'], false], [['build:write', 'image:read'], true]] as const) {
    const { body } = await app.post({ source: SOURCE }, await keyWith(t, app, ...scopes))
    t.equal((await app.runner.begun(String(body['id']))).job.readsRegistry, may, scopes.join())
  }
})

t.test('each call needs its scope', async (t) => {
  const app = await startBuilds(t)
  const id = await app.build()
  const nothing = await keyWith(t, app, 'image:read')
  const calls = [
    ['GET', '/builds', 'read'], ['GET', `/builds/${id}`, 'read'], ['GET', `/builds/${id}/events`, 'read'], ['GET', '/builders', 'read'], ['GET', '/builders/x', 'read'],
    ['POST', '/builders', 'write'], ['POST', '/builders/x/prune', 'write'], ['DELETE', `/builds/${id}`, 'delete'], ['DELETE', '/builders/x', 'delete']
  ] as const
  for (const [method, url, action] of calls) {
    t.match(await app.call(method, url, method === 'POST' ? {} : undefined, nothing), { status: 403, body: { message: `missing required scope: build:${action}` } }, `${method} ${url}`)
  }
  t.match(await app.post({ source: SOURCE }, nothing), { status: 403, body: { message: 'missing required scope: build:write' } })
  t.match(await app.post({ source: SOURCE }, { authorization: '' }), { status: 401 })
  t.match(await app.get(id), { status: 'building' })
})

t.test('secrets come from the folder of the server, by name, and stand nowhere else', async (t) => {
  const secretsDir = await temporaryFolder(t)
  const value = 'a-value-that-must-not-be-found-anywhere'
  await writeFile(join(secretsDir, 'npm_token'), `${value}\n`)
  await writeFile(join(secretsDir, 'raw.bin'), Buffer.from([0, 255, 10, 13]))
  await mkdir(join(secretsDir, 'folder'))
  const app = await startBuilds(t, { config: { secretsDir } })
  for (const id of ['nobody', 'folder']) t.match(await app.post({ source: SOURCE, secrets: JSON.stringify([{ id }]) }), { status: 400, body: { message: `secrets: this server has no secret ${id}` } })
  const id = await app.build({ secrets: '[{"id":"npm_token"},{"id":"raw.bin"}]' })
  const { job } = await app.runner.begun(id)
  t.same([...job.secrets], [['npm_token', Buffer.from(`${value}\n`)], ['raw.bin', Buffer.from([0, 255, 10, 13])]])
  const { stdout } = await createHostCommands().run('sh', ['-c', `grep -rl ${value} ${app.dataDir} || true`])
  t.equal(stdout, '')
  t.notMatch(JSON.stringify(app.lines), value)
  t.notMatch(JSON.stringify(await app.get(id)), value)
  t.match(await readFile(join(app.dataDir, 'builds', id, 'order.json'), 'utf8'), /npm_token/, 'only its name')
})

t.test('a build whose key has ended does not begin and gets no secret, also after a restart', async (t) => {
  const secretsDir = await temporaryFolder(t)
  await writeFile(join(secretsDir, 'npm_token'), 'old')
  const config = { secretsDir, concurrency: 1 }
  const app = await startBuilds(t, { config })
  const leaked = await keyWith(t, app, 'build:write')
  const ask = async (headers = {}): Promise<string> => String((await app.post({ source: SOURCE, secrets: '[{"id":"npm_token"}]' }, headers)).body['id'])
  const running = await ask()
  const waiting = await ask(leaked)
  const next = await ask()
  const later = await ask(leaked)
  const unknown = await ask(leaked)
  const good = await ask()
  await app.runner.begun(running)
  t.equal((await app.call('DELETE', `/keys/${idOfKey(leaked['authorization']?.slice(7) ?? '') ?? ''}`)).status, 204)
  await writeFile(join(secretsDir, 'npm_token'), 'new')
  ;(await app.runner.begun(running)).finish()
  t.match(await app.become(waiting, 'failed'), { error: 'the key that asked for it has ended' })
  await app.runner.begun(next)
  t.same(app.runner.order, [running, next])
  await app.app.stop()
  const order = join(app.dataDir, 'builds', unknown, 'order.json')
  const { keyId: _keyId, ...earlier } = JSON.parse(await readFile(order, 'utf8'))
  await writeFile(order, JSON.stringify(earlier))
  const second = await startBuilds(t, { dataDir: app.dataDir, config })
  second.runner.onRun = (run) => { run.finish() }
  t.match(await second.become(later, 'failed'), { error: 'the key that asked for it has ended' })
  await second.become(good, 'ready')
  t.same(second.runner.order, [unknown, good], 'what an earlier version has stored names no key, and runs')
})

t.test('a secret that is gone when the build starts, or too large, fails it', async (t) => {
  const secretsDir = await temporaryFolder(t)
  await writeFile(join(secretsDir, 'gone'), 'x')
  await writeFile(join(secretsDir, 'large'), Buffer.alloc(500 * 1024 + 1))
  const app = await startBuilds(t, { config: { secretsDir, concurrency: 1 } })
  const first = await app.build()
  const gone = await app.build({ secrets: '[{"id":"gone"}]' })
  const large = await app.build({ secrets: '[{"id":"large"}]' })
  await rm(join(secretsDir, 'gone'))
  ;(await app.runner.begun(first)).finish()
  t.match(await app.become(gone, 'failed'), { error: 'this server has no secret gone any more' })
  t.match(await app.become(large, 'failed'), { error: 'secret large has more than 512000 bytes' })
  t.same(app.runner.order, [first])
})
