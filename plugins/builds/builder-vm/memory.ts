// Whether the guest's kernel has killed something for want of memory.
import type { GuestLink } from '../../guest/contract.ts'
import { outputOf } from './guest-command.ts'

/** How often it has, since it was started. */
export async function oomKills (link: GuestLink, signal: AbortSignal): Promise<number> {
  return Number(/^oom_kill (\d+)$/m.exec(await outputOf(link, ['cat', '/proc/vmstat'], signal))?.[1] ?? 0)
}
