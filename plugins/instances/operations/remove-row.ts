// Removes the row of what did not become an instance.
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import type { BaseContext } from '../context.ts'
import { doLater } from '../parts/later.ts'

/** While the database is away the row stays, and with it a name and a user that nobody can have; so that is tried again. Rejects all the same. */
export async function removeRow (context: BaseContext, id: string): Promise<void> {
  await nowOrLater(async () => { await context.repository.remove(id) }, () => { removeRowLater(context, id) })
}

export function removeRowLater (context: BaseContext, id: string): void {
  doLater(context, 'row', id, async () => { await context.repository.remove(id) })
}
