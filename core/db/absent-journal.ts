// Stands in for the service `journal` while no plugin provides it: notes that a host has changes that its journal does not know. Whoever keeps the journal later must not say that it is whole.
import type { Knex } from 'knex'
import type { Journal } from './changes.ts'

interface Row { host_id: string }

const TABLE = 'core_unjournaled'

/** A journal that only notes, once in the life of this server, that there was something to write. */
export function absentJournal (hostId: string): Journal {
  let isNoted = false
  return {
    know () {},
    async write (trx) {
      if (isNoted) return
      await trx<Row>(TABLE).insert({ host_id: hostId }).onConflict('host_id').ignore()
      // Only the commit makes it so.
      trx.executionPromise.then(() => { isNoted = true }, () => {})
    },
    progress () {}
  }
}

/** Whether a host has had changes without a journal since this was last asked. */
export async function hadUnjournaled (trx: Knex.Transaction, hostId: string): Promise<boolean> {
  return await trx<Row>(TABLE).where({ host_id: hostId }).delete() > 0
}
