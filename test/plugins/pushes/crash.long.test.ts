// The server is killed in the middle of pushes.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startGatedRegistry } from '../../helpers/gated-registry.ts'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { pushLayout } from '../../helpers/oci.ts'
import { startTestServer } from '../../helpers/server.ts'
import { LOGIN, startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { digestAt, ended, textLayout, until } from './app.ts'
import { eventually } from '../../helpers/eventually.ts'

t.test('after kill -9 a push goes on, one with credentials has failed, and no file and no process is left of either', { timeout: 300_000 }, async (t) => {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t)])
  const gate = await startGatedRegistry(t, origin.host)
  const server = await startTestServer(t, { plugins: { guest: { config: { prepare: false } } } })
  const name = `${gate.host}/app:1`
  const layout = await textLayout(t, 'crash')
  await pushLayout(layout, `${origin.host}/app:1`)
  await server.sdk.images.create({ name })
  await eventually('the image is ready', async () => (await server.sdk.images.get(name)).status === 'ready')

  gate.hold()
  const going = await server.sdk.pushes.create({ image: name, target: `${target.host}/going:1` })
  const lent = await server.sdk.pushes.create({ image: name, target: `${target.host}/lent:1`, credentials: LOGIN })
  const waiting = await server.sdk.pushes.create({ image: name, target: `${target.host}/waiting:1` })
  await gate.held()
  for (const { id } of [going, lent]) await until(server, id, ({ status }) => status === 'pushing')
  t.equal((await readdir(join(server.dataDir, 'pushes'))).length, 2, 'two are under way')

  const lending = async () => (await processesIn(server.folder)).filter(({ command }) => command.includes('skopeo copy') && command.includes('lent'))
  await eventually('the copy with credentials runs', async () => (await lending()).length > 0)

  await server.kill9()
  await server.restart()
  const left = await lending()
  t.match(await server.sdk.pushes.get(lent.id), { status: 'failed', error: /was interrupted/ })
  t.same(left, [], 'the copy with credentials ended with its server')
  gate.release()
  for (const { id } of [going, waiting]) t.match(await ended(server, id), { status: 'pushed', error: null, digest: layout.digest })
  for (const end of ['going:1', 'waiting:1']) t.equal(await digestAt(`${target.host}/${end}`), layout.digest)
  await t.rejects(digestAt(`${target.host}/lent:1`), { message: /404/ })
  t.same(await readdir(join(server.dataDir, 'pushes')), [])
})
