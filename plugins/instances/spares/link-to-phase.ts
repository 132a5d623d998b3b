// Waits until a guest says that it is where a VM made ahead stands still.
import type { Vm } from '../../../core/library/hypervisor.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { GuestLink, GuestPhase, GuestService } from '../../guest/contract.ts'

/** The link to a guest in that phase; the caller closes it. Throws when the guest is anywhere else. */
export async function linkToPhase (guest: GuestService, vm: Vm, wanted: GuestPhase, signal: AbortSignal): Promise<GuestLink> {
  const link = guest.link(await vm.connect())
  try {
    const { phase } = await unlessAborted(signal, link.hello)
    if (phase !== wanted) throw new Error(`the guest of a VM made ahead is ${phase}, and not ${wanted}`)
    return link
  } catch (error) {
    link.close()
    throw error
  }
}
