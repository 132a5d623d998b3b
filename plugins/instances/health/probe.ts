// One probe, of whatever type the check names, through the guest's agent.
import type { GuestSession } from '../guest/guest-session.ts'
import type { HealthCheck } from './check.ts'
import { probeByCommand } from './probe-command.ts'
import { probePort } from './probe-port.ts'

/** Why the probe failed; undefined when it did not. @param address of the instance in its network */
export async function probe (session: GuestSession, check: HealthCheck, address: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  const link = await session.awaitLink(check.timeoutMs, signal)
  if (link === undefined) return 'the guest agent does not answer'
  return check.type === 'exec' ? await probeByCommand(link, check, session.workload.env, signal) : await probePort(link, check, address, signal)
}
