// Shares of the long tier, for a build server whose time is bounded: one commit has one share, another commit another.
import { estimate, type Durations } from './durations.ts'

/** With all of the long tier a run takes two hours on two slow processors, with a quarter three quarters of an hour. */
export const SHARES = 4

/** What the system of each commit must hold on, and what is a part of something that is dealt out by commit itself. */
const EVERY_COMMIT: ReadonlySet<string> = new Set([
  'test/systems/trixie.long.test.ts', 'test/integration/drivers/qemu-under-kvm.long.test.ts', 'test/integration/devices.long.test.ts'
])

export interface Share<File> {
  readonly now: readonly File[]
  /** those of the other shares */
  readonly left: readonly File[]
}

/** The share with the number `share`, from 0 to below SHARES. All take about the same time, by the durations that were recorded: each file, the longest first, goes to the share that has least. */
export function shareOfFiles<File extends { readonly source: string }> (files: readonly File[], durations: Durations, share: number): Share<File> {
  const seconds = Array.from({ length: SHARES }, () => 0)
  const others = new Set<File>()
  const dealt = files.filter(({ source }) => !EVERY_COMMIT.has(source))
    .map(file => ({ file, takes: estimate(durations, file.source) }))
    // By name where they take the same, so that the order of a folder's entries decides nothing.
    .sort((a, b) => b.takes - a.takes || (a.file.source < b.file.source ? -1 : 1))
  for (const { file, takes } of dealt) {
    const to = seconds.indexOf(Math.min(...seconds))
    seconds[to] = (seconds[to] ?? 0) + takes
    if (to !== share) others.add(file)
  }
  return { now: files.filter(file => !others.has(file)), left: [...others] }
}
