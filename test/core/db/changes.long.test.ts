// Changes that run one after the other, on a real MariaDB that hangs.
import { existsSync } from 'node:fs'
import t from 'tap'
import { createChanges } from '../../../core/db/changes.ts'
import { isDatabaseAway } from '../../../core/db/deadline.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { createMariadbDatabase, hangMariadb } from '../../helpers/mariadb.ts'

const skip = existsSync('/usr/sbin/mariadbd') ? false : 'install the package mariadb-server'
/** of a statement, and a little for what comes later */
const DEADLINE_MS = 12_000

t.test('while the database hangs all changes of a composed kind are refused within the time of one, and afterwards they are stored', { skip }, async (t) => {
  const database = openDatabase(await createMariadbDatabase())
  t.teardown(async () => { await database.destroy() })
  await database.schema.createTable('numbers', (table) => { table.integer('number') })
  const changes = createChanges(database, undefined, { resource: 'number', scope: 'number:read', isComposed: true, list: async () => [] })
  const change = async (number: number): Promise<void> => { await changes.commit(async (trx) => { await trx('numbers').insert({ number }) }) }
  await change(1)
  const resume = await hangMariadb()
  const begun = performance.now()
  const errors = await Promise.all([2, 3, 4, 5, 6].map(async (number) => await change(number).catch((error: unknown) => error)))
  const tookMs = performance.now() - begun
  t.ok(errors.every((error) => isDatabaseAway(error)))
  t.ok(tookMs < DEADLINE_MS, `after ${Math.round(tookMs)} ms`)
  resume()
  await change(7)
  t.match(await database('numbers').whereIn('number', [1, 7]), [{ number: 1 }, { number: 7 }])
})
