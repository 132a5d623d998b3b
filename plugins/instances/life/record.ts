// What is stored of an instance's life beside what its caller asked for. A fork begins with nothing of it.
import type { Expiry } from '../expiry/expiry.ts'

export interface Life {
  /** absent: it does not expire */
  readonly expiry?: Expiry | undefined
}
