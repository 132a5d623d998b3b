// What a fault is: something that goes wrong for a while, with its undo.
import type { Random } from '../../fuzz/fuzz.ts'
import type { World } from '../world.ts'
import type { FaultKind } from './kind.ts'

export interface Fault {
  /** what was chosen, for the log */
  readonly text: string
  readonly kind: FaultKind
  /** Begins it; what it gives undoes it. */
  begin (world: World): Promise<() => Promise<void>>
}

export interface FaultChoice {
  /** whether it needs a database that is a process */
  readonly needsDatabaseServer?: boolean
  choose (random: Random): Fault
}
