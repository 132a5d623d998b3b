// What is stored of an instance's life beside what its caller asked for. A fork begins with nothing of it.
import type { RestartState } from '../restart/policy.ts'
import type { Expiry } from '../expiry/expiry.ts'

export interface Life {
  /** absent: it does not expire */
  readonly expiry?: Expiry | undefined
  /** absent: it has neither been restarted nor stopped by hand since it was started */
  readonly restart?: RestartState | undefined
}
