// Which users are left for VMs.
import type { BaseContext } from '../context.ts'

/** Their numbers, the lowest first, as far as is known here: another create may take one in between. Where VMs run as the server's user, there is no limit but that to attempts. */
export function * freeSlots (context: BaseContext): Generator<number | null> {
  const { vmUserCount } = context.settings
  const taken = new Set([...context.instances.all().map(({ record }) => record.slot), ...[...context.hidden].map(({ slot }) => slot)])
  for (let slot = 0; slot < vmUserCount; slot++) {
    if (!context.separateUsers) yield null
    else if (!taken.has(slot)) yield slot
  }
}
