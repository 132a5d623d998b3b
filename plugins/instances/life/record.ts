// What is stored of an instance's life beside what its caller asked for. A fork begins with nothing of it.
import type { RestartState } from '../restart/policy.ts'
import type { PhaseState } from '../phases/record.ts'
import type { Moment } from './moment.ts'
import type { Expiry } from '../expiry/expiry.ts'

export interface Life {
  /** absent in rows of before phases were written down, and of those that have not changed since they are there */
  readonly phase?: PhaseState | undefined
  /** until when it does not go to standby by itself; absent: nobody was promised that */
  readonly hold?: Moment | undefined
  /** absent: it does not expire */
  readonly expiry?: Expiry | undefined
  /** absent: it has neither been restarted nor stopped by hand since it was started */
  readonly restart?: RestartState | undefined
}
