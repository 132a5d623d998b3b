// What is stored of an instance's life beside what its caller asked for. A fork begins with nothing of it.
import type { RestartState } from '../restart/policy.ts'
import type { Moment } from './moment.ts'
import type { Expiry } from '../expiry/expiry.ts'

export interface Life {
  /** until when it does not go to standby by itself; absent: nobody was promised that */
  readonly hold?: Moment | undefined
  /** absent: it does not expire */
  readonly expiry?: Expiry | undefined
  /** absent: it has neither been restarted nor stopped by hand since it was started */
  readonly restart?: RestartState | undefined
}
