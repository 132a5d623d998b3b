// A server whose database goes away for some of its transactions.
import type { Knex } from 'knex'
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'

/** What becomes of each of the next transactions; those after the last one are done. */
type Fate = 'done' | 'answer lost' | 'not done'

/** @param start another one than that of most tests */
export async function startAway (t: Test, options: StartOptions = {}, start: (t: Test, options: StartOptions) => Promise<TestApp> = startApp): Promise<TestApp & { go (...fates: Fate[]): void }> {
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
  return { ...await start(t, { ...options, plugins: [watching, ...options.plugins ?? []] }), go (...next) { fates = next } }
}
