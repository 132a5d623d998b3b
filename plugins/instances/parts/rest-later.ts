// Gives back what a VM took of the host that could not be given back when the VM ended, or was suspended: until it is done, or the instance has a VM again.
import type { BaseContext } from '../context.ts'
import { doLater } from './later.ts'

export function restLater (context: BaseContext, id: string): void {
  doLater(context, 'rest', id, async () => {
    const instance = context.instances.known(id)
    // Whoever gives it a VM claims room anew, and whoever deletes it releases all of it.
    if (instance === undefined || instance.session !== undefined || instance.record.handle !== null) return
    // The control group of a VM that has ended went before; that of one that is kept stays, and so does that of one that just ends.
    await context.resources?.rest(id, { keepGroup: true })
  })
}
