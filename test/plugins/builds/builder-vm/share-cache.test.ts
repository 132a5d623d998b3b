// The cache of a scope becomes everybody's within a real registry.
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createRegistryClient } from '../../../../plugins/builds/builder-image/registry-client.ts'
import { shareCache } from '../../../../plugins/builds/builder-vm/share-cache.ts'
import { KEY, startImagesApp, temporaryFolder } from '../../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../../helpers/oci.ts'
import { tar } from '../../../helpers/tar.ts'

/** What could not be shared is told so. */
const never = (line: string): void => { throw new Error(line) }

t.test('what is not there yet is shared, without being sent, and no image is made of it', async (t) => {
  const app = await startImagesApp(t)
  const signal = AbortSignal.timeout(60_000)
  const channel = app.registry.open({ read: 'all', write: [] })
  t.teardown(() => { channel.revoke() })
  const client = createRegistryClient(channel, signal)
  t.same(await client.tags('cache/team'), [], 'a repository that is not there has no tags')
  await shareCache(app.registry, 'cache/team', 'cache/global/node', signal, never)
  t.same(await client.tags('cache/global/node'), [])
  for (const tag of ['k1', 'k2']) {
    const layout = await writeLayout(join(await temporaryFolder(t), tag), [{ layers: [tar([{ path: 'f', content: tag }])] }])
    await pushLayout(layout, `${app.host}/cache/team:${tag}`, { username: 'x', password: KEY }, 'oci')
    await shareCache(app.registry, 'cache/team', 'cache/global/node', signal, never)
  }
  t.same([...await client.tags('cache/global/node')].sort(), ['k1', 'k2'])
  for (const tag of ['k1', 'k2']) t.same(await client.manifest('cache/global/node', tag), await client.manifest('cache/team', tag))
  t.equal((await app.request('GET', `/images/${encodeURIComponent('localhost/cache/global/node:k1')}`)).status, 404)
})

t.test('a cache of many thousand layers is found and shared, and a layer that cannot be read fails no build', async (t) => {
  const app = await startImagesApp(t)
  const signal = AbortSignal.timeout(60_000)
  const channel = app.registry.open({ read: 'all', write: [] })
  t.teardown(() => { channel.revoke() })
  const client = createRegistryClient(channel, signal)
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/cache/team:zz`, { username: 'x', password: KEY }, 'oci')
  await pushLayout(layout, `${app.host}/cache/global/node:first`, { username: 'x', password: KEY }, 'oci')
  // As the registry keeps them: one by one, they would take a minute.
  const place = (repository: string, tag: string): string => join(app.dataDir, 'registry/store/docker/registry/v2/repositories', repository, '_manifests/tags', tag)
  const tags = Array.from({ length: 16_000 }, (_, number) => createHash('sha256').update(String(number)).digest('hex'))
  for (const tag of tags) for (const repository of ['cache/team', 'cache/global/node']) mkdirSync(place(repository, tag))
  t.equal((await client.tags('cache/team')).length, 16_001)
  t.equal(await client.hasTags('cache/team'), true)
  t.equal(await client.hasTags('cache/nobody'), false)
  await shareCache(app.registry, 'cache/team', 'cache/global/node', signal, never)
  t.same(await client.manifest('cache/global/node', 'zz'), await client.manifest('cache/team', 'zz'))

  mkdirSync(place('cache/team', 'broken'))
  const lines: string[] = []
  await shareCache(app.registry, 'cache/team', 'cache/global/node', signal, (line) => { lines.push(line) })
  t.match(lines, [/^the cache could not be shared .*404/])
  await t.rejects(shareCache(app.registry, 'cache/team', 'cache/global/node', AbortSignal.abort(new Error('cancelled')), never), { message: 'cancelled' })
})
