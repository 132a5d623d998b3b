// The way to a guest's agent, for calls that need one.
import type { GuestLink } from '../../guest/contract.ts'
import { AgentDisabled, AgentUnavailable } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { requireOwn } from '../workers/own-instance.ts'
import { requireState } from '../model/state.ts'

/** @throws WorkerInstance, InvalidState when it does not run, AgentDisabled when it was created without an agent */
export function requireAgent (call: 'exec' | 'cp' | 'stat' | 'forward', instance: LiveInstance): void {
  requireOwn(call, instance)
  if (instance.record.spec.skipGuestAgent) throw AgentDisabled(call)
  requireState(call, instance.name, instance.derived)
}

/** The link to the guest. Waits a while for it: after a restart of the server the link is set up anew. */
export async function awaitAgent (instance: LiveInstance, timeoutMs: number, signal: AbortSignal): Promise<GuestLink> {
  const link = await instance.session?.awaitLink(timeoutMs, signal)
  if (link === undefined) throw AgentUnavailable(instance.name)
  return link
}
