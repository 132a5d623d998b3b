// The monitors of instances' health that are at work.
import type { GuestSession } from '../guest/guest-session.ts'
import type { HealthCheck } from './check.ts'

/** What is being probed, and how. */
export interface Monitor {
  readonly session: GuestSession
  readonly check: HealthCheck
  readonly stop: AbortController
}
