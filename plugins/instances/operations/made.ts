// The result that all ways of creating an instance have in common.
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { CreateWay } from '../templates/metrics.ts'

/** An instance that is complete, but not listed yet. */
export interface Made {
  readonly instance: LiveInstance
  readonly session: GuestSession
  readonly way: CreateWay
}
