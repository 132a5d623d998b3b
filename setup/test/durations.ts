// How long each test file took when durations were last recorded, so that the longest begin first and none is left to run alone at the end.
import { readFile, writeFile } from 'node:fs/promises'
import type { FileOutcome } from './count.ts'

/** Shorter files need no order. */
const RECORDED_FROM_SECONDS = 3

/** seconds by source file */
export type Durations = Readonly<Record<string, number>>

export async function readDurations (file: string): Promise<Durations> {
  const found: unknown = JSON.parse(await readFile(file, 'utf8'))
  if (typeof found !== 'object' || found === null) throw new Error(`${file}: not an object`)
  return Object.fromEntries(Object.entries(found).map(([name, seconds]) => [name, Number(seconds)]))
}

/** Replaces the durations of the files that ran, and removes files that no longer exist. */
export async function recordDurations (file: string, known: Durations, outcomes: readonly FileOutcome[], present: readonly string[]): Promise<void> {
  const fresh = outcomes.flatMap(({ name, durationMs }): Array<[string, number]> => durationMs === undefined ? [] : [[name, Math.round(durationMs / 1000)]])
  const all = Object.entries({ ...known, ...Object.fromEntries(fresh) })
  const kept = all.filter(([name, seconds]) => present.includes(name) && seconds >= RECORDED_FROM_SECONDS).sort(([a], [b]) => a < b ? -1 : 1)
  await writeFile(file, `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`)
}

/** Expected seconds of a file: the recorded ones, or else a guess by its folder. */
export function estimate (durations: Durations, source: string): number {
  const bootsVms = source.includes('/integration/') || source.includes('/guest/machine') || source.includes('conformance')
  return durations[source] ?? (bootsVms ? 60 : 2)
}

/** Seconds after which a file counts as hanging: enough for one that is several times slower than recorded, on a host under load. */
export function bound (durations: Durations, source: string): number {
  return Math.min(1500, 300 + 8 * estimate(durations, source))
}
