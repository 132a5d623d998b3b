// How many processes the guest's kernel has killed for want of memory.
import type { GuestLink } from '../../guest/contract.ts'
import { outputOf } from './guest-command.ts'

/** The number since the guest's start. */
export async function oomKills (link: GuestLink, signal: AbortSignal): Promise<number> {
  return Number(/^oom_kill (\d+)$/m.exec(await outputOf(link, ['cat', '/proc/vmstat'], signal))?.[1] ?? 0)
}
