// The built-in registry, asked without a key, as builds ask it.
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createRegistryClient } from '../../../../plugins/builds/builder-image/registry-client.ts'
import { KEY, startImagesApp, temporaryFolder } from '../../../helpers/images-app.ts'
import { pushLayout, writeLayout } from '../../../helpers/oci.ts'
import { tar } from '../../../helpers/tar.ts'

t.test('a cache of many thousand layers is found', async (t) => {
  const app = await startImagesApp(t)
  const channel = app.registry.open({ read: 'all', write: [] })
  t.teardown(() => { channel.revoke() })
  const client = createRegistryClient(channel, AbortSignal.timeout(60_000))
  const layout = await writeLayout(join(await temporaryFolder(t), 'l'), [{ layers: [tar([{ path: 'f', content: 'x' }])] }])
  await pushLayout(layout, `${app.host}/cache/team:zz`, { username: 'x', password: KEY }, 'oci')
  // As the registry keeps them: one by one, they would take a minute.
  const place = (tag: string): string => join(app.dataDir, 'registry/store/docker/registry/v2/repositories/cache/team/_manifests/tags', tag)
  for (let number = 0; number < 16_000; number++) mkdirSync(place(createHash('sha256').update(String(number)).digest('hex')))
  t.equal(await client.hasTags('cache/team'), true)
  t.equal(await client.hasTags('cache/nobody'), false)
})
