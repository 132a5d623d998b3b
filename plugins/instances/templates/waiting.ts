// Waits until a guest waits for its workload.
import type { Vm } from '../../../core/library/hypervisor.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { GuestLink, GuestService } from '../../guest/contract.ts'

/** The link to a guest that waits for its workload; the caller closes it. Throws when the guest is anywhere else. */
export async function linkToWaiting (guest: GuestService, vm: Vm, signal: AbortSignal): Promise<GuestLink> {
  const link = guest.link(await vm.connect())
  try {
    const { phase } = await unlessAborted(signal, link.hello)
    if (phase !== 'waiting') throw new Error(`the guest of a template is ${phase}, and does not wait for its workload`)
    return link
  } catch (error) {
    link.close()
    throw error
  }
}
