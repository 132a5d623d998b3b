// A proxy that a server has left ends with the next server that has none: nobody could change or revoke the credentials that it puts in.
import t, { type Test } from 'tap'
import { buildApp } from '../../../core/app.ts'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { builtInFolder, findBuiltIns } from '../../../core/plugins/discover.ts'
import { isAlive } from '../../../core/process/identity.ts'
import { endAllOfOwner } from '../../../plugins/egress/process/end-all.ts'
import { findProxies } from '../../../plugins/egress/process/find.ts'
import { pathsOf } from '../../../plugins/egress/process/paths.ts'
import { plugin } from '../../../plugins/egress/index.ts'
import { plugin as networking } from '../../../plugins/networking/index.ts'
import { noBuiltIns } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, type EgressStage } from './stage.ts'

interface Left {
  readonly stage: EgressStage
  readonly proxy: ProcessIdentity
}

/** One with a credential, whose server is killed. */
async function left (t: Test): Promise<Left> {
  const stage = await setStage(t)
  const server = await stage.server()
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  await server.crash()
  const [found] = await findProxies(stage.paths.folder, `/run/netns/${stage.world.namespace}`, 0)
  if (found === undefined) throw new Error('the proxy has ended with its server')
  t.equal((await stage.client.state()).vms, 1, 'it outlives the server, with its credentials')
  return { stage, proxy: found.identity }
}

async function start (t: Test, { world }: EgressStage, plugins: object, options: Parameters<typeof buildApp>[1] = {}): Promise<string | undefined> {
  const app = await buildApp({ server: { dataDir: world.folder, listen: '127.0.0.1:0' }, plugins }, { environment: {}, logStream: { write: () => {} }, ...options })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: false })
  return app.plugins.list().find(({ id }) => id === 'egress')?.state
}

t.test('a plugin that is turned off leaves no proxy', { skip: skipReason() }, async (t) => {
  const { stage, proxy } = await left(t)
  const off = Object.fromEntries([...(await findBuiltIns(builtInFolder)).keys()].map((id) => [id, { enabled: false }]))
  t.equal(await start(t, stage, off), 'disabled')
  t.notOk(isAlive(proxy))
})

t.test('nor does one whose guests have no network any more', { skip: skipReason() }, async (t) => {
  const { stage, proxy } = await left(t)
  t.equal(await start(t, stage, {}, { builtIns: noBuiltIns, plugins: [plugin] }), 'skipped')
  t.notOk(isAlive(proxy))
})

t.test('nor one whose proxy is systemd\'s from now on', { skip: skipReason() }, async (t) => {
  const { stage, proxy } = await left(t)
  t.equal(await start(t, stage, { egress: { config: { proxy: { manage: false, controlSocket: '/run/berth-egress/control.sock' } } } }, { builtIns: noBuiltIns, plugins: [networking, plugin] }), 'started')
  t.notOk(isAlive(proxy))
})

t.test('nor one without the plugin instances, which alone knows the VMs', { skip: skipReason() }, async (t) => {
  const { stage, proxy } = await left(t)
  t.equal(await start(t, stage, {}, { builtIns: noBuiltIns, plugins: [networking, plugin] }), 'started')
  await eventually('it has ended', () => !isAlive(proxy), { limitMs: 10_000 })
})

t.test('where there was none, there is nothing to end', async (t) => {
  await t.resolves(endAllOfOwner(pathsOf(testFolder(t))))
})
