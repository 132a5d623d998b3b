// A create whose row was stored or not, as the database went away: it is no instance, and its name is free again without a restart.
import type { Knex } from 'knex'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startApp, type TestApp } from './app.ts'

/** What becomes of each of the next transactions; those after the last one are done. */
type Fate = 'done' | 'answer lost' | 'not done'

async function startAway (t: Test): Promise<TestApp & { go (...fates: Fate[]): void }> {
  let fates: Fate[] = []
  const gone = (): Error => Object.assign(new Error('Connection lost'), { fatal: true })
  const watching = definePlugin({
    manifest: { id: 'watching', provides: [], requires: ['database'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ database }) => {
      const real: Knex['transaction'] = database.transaction.bind(database)
      Object.defineProperty(database, 'transaction', {
        value: async (...args: Parameters<Knex['transaction']>) => {
          const fate = fates.shift()
          if (fate === 'not done') throw gone()
          const result: unknown = await real(...args)
          if (fate === 'answer lost') throw gone()
          return result
        }
      })
      return {}
    }
  })
  return { ...await startApp(t, { plugins: [watching] }), go (...next) { fates = next } }
}

const BODY = { name: 'web', image: 'test', overlay_size: '32MB' }

t.test('a create whose first commit was done and whose answer was lost is taken back', async (t) => {
  const { call, go } = await startAway(t)
  go('answer lost')
  t.match(await call('POST', '/instances', BODY), { status: 503, body: { code: 'database_unavailable' }, headers: { 'retry-after': '5' } })
  t.equal((await call('GET', '/instances/web')).status, 404)
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})

t.test('a create that cannot be taken back, as the database is away, is taken back later', async (t) => {
  const { call, go, host } = await startAway(t)
  host.launchError = new Error('no VM today')
  go('done', 'not done', 'not done')
  t.equal((await call('POST', '/instances', BODY)).status, 500)
  host.launchError = undefined
  await eventually('its name is free', async () => (await call('POST', '/instances', BODY)).status === 201, { limitMs: 30_000 })
})
