// The cache of a scope becomes everybody's within a real registry.
import { join } from 'node:path'
import t from 'tap'
import { createRegistryClient } from '../../../../plugins/builds/builder-image/registry-client.ts'
import { shareCache } from '../../../../plugins/builds/builder-vm/share-cache.ts'
import { KEY, startImagesApp, temporaryFolder } from '../../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../../helpers/oci.ts'
import { tar } from '../../../helpers/tar.ts'

t.test('what is not there yet is shared, without being sent, and no image is made of it', async (t) => {
  const app = await startImagesApp(t)
  const signal = AbortSignal.timeout(60_000)
  const channel = app.registry.open({ read: 'all', write: [] })
  t.teardown(() => { channel.revoke() })
  const client = createRegistryClient(channel, signal)
  t.same(await client.tags('cache/team'), [], 'a repository that is not there has no tags')
  await shareCache(app.registry, 'cache/team', 'cache/global/node', signal)
  t.same(await client.tags('cache/global/node'), [])
  for (const tag of ['k1', 'k2']) {
    const layout = await writeLayout(join(await temporaryFolder(t), tag), [{ layers: [tar([{ path: 'f', content: tag }])] }])
    await pushLayout(layout, `${app.host}/cache/team:${tag}`, { username: 'x', password: KEY }, 'oci')
    await shareCache(app.registry, 'cache/team', 'cache/global/node', signal)
  }
  t.same([...await client.tags('cache/global/node')].sort(), ['k1', 'k2'])
  for (const tag of ['k1', 'k2']) t.same(await client.manifest('cache/global/node', tag), await client.manifest('cache/team', tag))
  t.equal((await app.request('GET', `/images/${encodeURIComponent('localhost/cache/global/node:k1')}`)).status, 404)
})
