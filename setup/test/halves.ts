// Halves of the long tier, for a build server whose time is bounded: one commit has one half, another commit the other.
import { estimate, type Durations } from './durations.ts'

/** What the system of each commit must hold on, and what is a part of something that is dealt out by commit itself. */
const EVERY_COMMIT: ReadonlySet<string> = new Set([
  'test/systems/trixie.long.test.ts', 'test/integration/drivers/qemu-under-kvm.long.test.ts', 'test/integration/devices.long.test.ts'
])

export interface Halves<File> {
  readonly now: readonly File[]
  /** those of the other half */
  readonly left: readonly File[]
}

/** The half with the number `half`, 0 or 1. Both take about the same time, by the durations that were recorded: each file, the longest first, goes to the half that has less. */
export function halve<File extends { readonly source: string }> (files: readonly File[], durations: Durations, half: number): Halves<File> {
  const seconds = [0, 0]
  const others: File[] = []
  const dealt = files.filter(({ source }) => !EVERY_COMMIT.has(source))
    .map(file => ({ file, takes: estimate(durations, file.source) }))
    // By name where they take the same, so that the order of a folder's entries decides nothing.
    .sort((a, b) => b.takes - a.takes || (a.file.source < b.file.source ? -1 : 1))
  for (const { file, takes } of dealt) {
    const to = (seconds[0] ?? 0) <= (seconds[1] ?? 0) ? 0 : 1
    seconds[to] = (seconds[to] ?? 0) + takes
    if (to !== half) others.push(file)
  }
  return { now: files.filter(file => !others.includes(file)), left: others }
}
