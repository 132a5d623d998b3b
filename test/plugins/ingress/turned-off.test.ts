// An nginx that a killed server has left ends with the next server that is told not to keep one.
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { buildApp } from '../../../core/app.ts'
import { builtInFolder, findBuiltIns } from '../../../core/plugins/discover.ts'
import { findProcesses } from '../../../plugins/ingress/process/find.ts'
import { plugin } from '../../../plugins/ingress/index.ts'
import { ADMIN_KEY, noBuiltIns } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { setStage, skipReason, type Stage } from './stage.ts'

/** One with an ingress, which is killed. */
async function left (t: Test): Promise<Stage> {
  const stage = await setStage(t)
  await stage.instance('web')
  const server = await stage.server()
  await server.ingresses.create({ name: 'site', rules: [{ match: { hostname: 'web.test' }, target: { instance: 'web', port: 8080 } }] })
  await eventually('what changed is settled', () => !server.ingresses.isSettling)
  t.match(await stage.ask({}), { status: 200 })
  await server.crash()
  t.match(await stage.ask({}), { status: 200 }, 'nginx outlives the server')
  return stage
}

async function isGone (t: Test, { paths, http }: Stage): Promise<void> {
  t.same(await findProcesses(paths.folder), [], 'no process')
  const [error] = await once(connect(http, '127.0.0.1'), 'error')
  t.match(error, { code: 'ECONNREFUSED' }, 'no port')
}

t.test('a plugin that is turned off leaves no process, no port and no route', { skip: skipReason() }, async (t) => {
  const stage = await left(t)
  const off = Object.fromEntries([...(await findBuiltIns(builtInFolder)).keys()].map((id) => [id, { enabled: false }]))
  const app = await buildApp({ server: { dataDir: stage.world.folder, apiKey: ADMIN_KEY }, plugins: off }, { environment: {}, logStream: { write: () => {} } })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: false })
  await isGone(t, stage)
  t.match(app.plugins.list().find(({ id }) => id === 'ingress'), { state: 'disabled' })
  t.equal((await app.http.inject({ url: '/ingresses', headers: { authorization: `Bearer ${ADMIN_KEY}` } })).statusCode, 404)
})

t.test('so does one whose ports were taken away, and one whose guests have no network any more', { skip: skipReason() }, async (t) => {
  for (const listen of [{}, { http: [1] }]) {
    const stage = await left(t)
    const app = await buildApp({ server: { dataDir: stage.world.folder, apiKey: ADMIN_KEY }, plugins: { ingress: { config: { listen } } } }, { environment: {}, builtIns: noBuiltIns, plugins: [plugin], logStream: { write: () => {} } })
    t.teardown(async () => { await app.stop() })
    await app.start({ listen: false })
    await isGone(t, stage)
    t.match(app.plugins.list().find(({ id }) => id === 'ingress'), { state: 'skipped' })
  }
})
