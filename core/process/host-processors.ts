// How many processors this process and those that it starts may use: those that it may run on, or fewer where control groups of version 2 leave it less time.
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { groupFacts, groupsOf, textIn, type GroupFacts } from './control-groups.ts'

/** What the kernel says; tests replace it. */
export interface ProcessorFacts extends GroupFacts {
  readonly allowed: number
}

function processorFacts (): ProcessorFacts {
  return { ...groupFacts(), allowed: availableParallelism() }
}

/** A whole number from 1, rounded down: a part of a processor runs nothing beside the others. Read anew each time, since limits may change. */
export function processorsOfHost ({ allowed, ...groups }: ProcessorFacts = processorFacts()): number {
  return Math.max(1, Math.floor(Math.min(allowed, ...groupsOf(groups).map((folder) => processorsIn(textIn(join(folder, 'cpu.max')))))))
}

/** @param text of `cpu.max`: microseconds of processor time, or `max`, in so many of the clock */
function processorsIn (text: string | undefined): number {
  const [quota = 'max', period = '100000'] = text?.trim().split(' ') ?? []
  return quota === 'max' ? Infinity : Number(quota) / Number(period)
}
