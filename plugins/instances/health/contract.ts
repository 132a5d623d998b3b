// What others know of the checks of health that are under way.
import type { Machine } from '../machine.ts'
import type { HealthCheck } from './check.ts'

/** What is being probed, and how. */
export interface Monitor {
  readonly machine: Machine
  readonly check: HealthCheck
  readonly stop: AbortController
}
