// One of several writers: adds to the counters named after the database's URL, in that order, ten times.
import { openDatabase } from '../../../../core/db/open.ts'
import { inTransaction } from '../../../../core/db/transaction.ts'

const [url = '', ...order] = process.argv.slice(2)
const database = openDatabase(url)
for (let round = 0; round < 10; round++) {
  await inTransaction(database, async (trx) => {
    for (const id of order) {
      // a read first, so that SQLite has to upgrade its lock
      await trx('counters').where({ id }).first()
      await trx('counters').where({ id }).update({ value: trx.raw('value + 1') })
    }
  })
}
await database.destroy()
