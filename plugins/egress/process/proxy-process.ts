// The interface to the proxy's process, for one that this server starts and for one that systemd starts.

import type { OwnRanges } from '../../../proxy/contract/control.ts'

export interface ProxyProcess {
  /** What its own configuration says of addresses, where this server has written it; `undefined`: the proxy alone knows. */
  readonly ranges: OwnRanges | undefined
  /** Time in which it answers once it is started, if it ever does, `ms`. */
  readonly startMs: number
  /** Resolves when the proxy runs as it should, after starting or replacing it where that is this server's task. @throws Error that says why it does not */
  ensure (signal: AbortSignal): Promise<void>
  /** Whether the running proxy is still as it should be. */
  isFit (): Promise<boolean>
  /** Whether a proxy of an earlier server runs, or one that is not this server's task. */
  isThere (): Promise<boolean>
  /** @throws egress_unavailable when nobody listens where guests' connections to the proxy go. A proxy that has taken a policy does. */
  requireReach (): Promise<void>
  /** Ends it, where that is this server's task. */
  stop (): Promise<void>
}
