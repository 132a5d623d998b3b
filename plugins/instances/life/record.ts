// What is stored of an instance's life beside the spec. A fork begins with none of it.
import type { RestartState } from '../restart/policy.ts'
import type { PhaseState } from '../phases/record.ts'
import type { Moment } from './moment.ts'
import type { Expiry } from '../expiry/expiry.ts'

export interface Life {
  /** absent in rows from before phases were stored that have not changed since */
  readonly phase?: PhaseState | undefined
  /** until when it does not go to standby by itself; absent: there is no hold */
  readonly hold?: Moment | undefined
  /** absent: it does not expire */
  readonly expiry?: Expiry | undefined
  /** absent: since it was started, it was neither restarted nor stopped by hand */
  readonly restart?: RestartState | undefined
}
