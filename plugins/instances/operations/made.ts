// What the ways of creating an instance have in common: their result.
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { CreateWay } from '../templates/metrics.ts'

/** An instance that has everything but is known to nobody. */
export interface Made {
  readonly instance: LiveInstance
  readonly session: GuestSession
  readonly way: CreateWay
}
