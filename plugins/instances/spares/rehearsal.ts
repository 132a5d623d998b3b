// Has the guest of a spare VM rehearse what it will be asked to do.
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { GuestLink, Rehearsal } from '../../guest/contract.ts'
import type { BaseContext } from '../context.ts'
import { isRefusal } from '../guest/guest-errors.ts'
import { guestNetworkOf } from '../parts/address.ts'
import type { Hidden } from './contract.ts'

/** The guest cannot rehearse. Another VM may still be used without a rehearsal. */
export class RehearsalFailed extends Error {
  override readonly name = 'RehearsalFailed'
}

/** The VM keeps its address when it becomes an instance, so the guest has it from the rehearsal on. */
export async function rehearse (context: BaseContext, { link, hidden }: { readonly link: GuestLink, readonly hidden: Hidden }, rehearsal: Rehearsal, signal: AbortSignal): Promise<void> {
  const network = guestNetworkOf(context, hidden.record)
  try {
    await unlessAborted(signal, link.rehearse({ ...rehearsal, ...network === undefined ? {} : { network } }))
  } catch (error) {
    // Any other error says nothing about guests.
    if (!isRefusal(error)) throw error
    throw new RehearsalFailed('the guest of a spare VM could not rehearse', { cause: error })
  }
}
