// Whether the server can work: its database must answer soon.
import type { Knex } from 'knex'
import { DatabaseUnavailable } from '../db/deadline.ts'

const PATIENCE_MS = 2_000

/** Makes the check behind `GET /health`. Requests at the same time share one query. It throws `DatabaseUnavailable`. */
export function healthCheck (database: Knex): () => Promise<void> {
  let asking: Promise<unknown> | undefined
  return async () => {
    asking ??= database.raw('SELECT 1').then(() => true, () => false).finally(() => { asking = undefined })
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<boolean>((resolve) => { timer = setTimeout(resolve, PATIENCE_MS, false) })
    const answers = await Promise.race([asking, late])
    clearTimeout(timer)
    if (answers !== true) throw DatabaseUnavailable()
  }
}
