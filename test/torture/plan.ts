// What a seed stands for: which clients call what, and which faults come when. Nothing that happened while it ran has a part in it, so a seed means the same each time.
import { Random } from '../fuzz/fuzz.ts'
import { ACTIONS } from './actions/index.ts'
import { FAULTS } from './faults/index.ts'
import type { Action } from './actions/action.ts'
import type { Fault } from './faults/fault.ts'

export interface Call { readonly afterMs: number, readonly action: Action }
export interface Trouble { readonly atMs: number, readonly forMs: number, readonly fault: Fault }

export interface RoundPlan {
  readonly number: number
  /** for each client its calls, one after the other */
  readonly clients: readonly (readonly Call[])[]
  readonly troubles: readonly Trouble[]
}

const CLIENTS = 3
const LEAST_CALLS = 3
const MORE_CALLS = 6
const MOST_PAUSE_MS = 1_200
const MOST_TROUBLES = 2
/** faults come while most of the calls do */
const FAULT_WITHIN_MS = 7_000
const LEAST_FAULT_MS = 500
const MOST_FAULT_MS = 6_000
/** far from each other, so that rounds of near seeds have nothing in common */
const ROUND_STEP = 1_000_003

/** One round of a seed; which databases a seed has decides which faults there are. */
export function planRound (seed: number, number: number, canLoseDatabase: boolean): RoundPlan {
  const random = new Random(seed * ROUND_STEP + number)
  const clients = Array.from({ length: CLIENTS }, () => Array.from({ length: LEAST_CALLS + random.below(MORE_CALLS) }, (): Call => ({ afterMs: random.below(MOST_PAUSE_MS), action: random.pick(ACTIONS)(random) })))
  const faults = FAULTS.filter(({ needsDatabaseServer }) => canLoseDatabase || needsDatabaseServer !== true)
  // The first round is without: what fails there fails by itself.
  const troubles = number === 0
    ? []
    : random.many(MOST_TROUBLES, (): Trouble => ({ atMs: random.below(FAULT_WITHIN_MS), forMs: LEAST_FAULT_MS + random.below(MOST_FAULT_MS), fault: random.pick(faults).choose(random) }))
  return { number, clients, troubles }
}
