// `npm test` and `npm run test:long`: one tier of the test files, for the fast one with lint beside them, then the count as the last line. The type check was the build before it.
// Each file runs as plain Node, not under tap's own command: that one hooks into module loading and into the environment of
// every child process, and servers and machines here are child processes.
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../core/package-root.ts'
import { notBegun, type FileOutcome } from './count.ts'
import { bound, estimate, readDurations, recordDurations, type Durations } from './durations.ts'
import { findTests, type TestFile } from './files.ts'
import { lint } from './lint.ts'
import { parseOptions, type TestOptions } from './options.ts'
import { add, fail, newTotal, printFile, printSummary } from './report.ts'
import { timesOf } from './processor-time.ts'
import { repeatFailed, type Repeatable } from './repeat.ts'
import { runFile, runFiles, type RunOptions } from './run-file.ts'
import { roomOfHost } from './room.ts'
import { runJobs } from './schedule.ts'
import { partOfCommit, playsWholeTables } from './share-of-commit.ts'
import { shareOfFiles, SHARES } from './share-of-files.ts'
import { ownProcesses, shareProcesses } from './share-process.ts'
import { tierOf } from './tiers.ts'

const outDir = relative(packageRoot, join(dirname(fileURLToPath(import.meta.url)), '../..'))
const durationsFile = join(packageRoot, 'setup/test/durations.json')

interface Job {
  /** what it has an outcome of each */
  readonly names: readonly string[]
  readonly seconds: number
  readonly run: (signal: AbortSignal) => Promise<FileOutcome[]>
  /** Runs one again by itself; undefined: another run has no other result. */
  readonly again?: (name: string, signal: AbortSignal) => Promise<FileOutcome>
}

/** The jobs of a run, the longest first. Lint is one of them, unless the run is about some files only. */
async function jobsOf (files: readonly TestFile[], durations: Durations, { tiers, filters, times }: TestOptions): Promise<Job[]> {
  const options = (signal: AbortSignal): RunOptions => ({ bound: ({ source }) => bound(durations, source), signal, times })
  const processes = shareProcesses(files, await ownProcesses(packageRoot, files), durations)
  const tests = processes.map((shared): Job => ({
    names: shared.map(({ source }) => source),
    seconds: shared.reduce((sum, { source }) => sum + estimate(durations, source), 0),
    run: async signal => await runFiles(shared, options(signal)),
    again: async (name, signal) => await runFile(shared.find(({ source }) => source === name) ?? shared[0], options(signal))
  }))
  tests.sort((a, b) => b.seconds - a.seconds)
  return tiers.includes('fast') && filters.length === 0 ? [{ names: ['lint'], seconds: Infinity, run: async signal => [await lint(signal)] }, ...tests] : tests
}

/** Runs the jobs, a few at a time. @param minutes after which it begins no further one */
async function runAll (jobs: readonly Job[], signal: AbortSignal, minutes = Infinity): Promise<Repeatable[]> {
  const results: Repeatable[] = []
  const until = performance.now() + minutes * 60_000
  const left = await runJobs(jobs, async ({ run, again }) => {
    for (const outcome of await run(signal)) {
      results.push({ outcome, ...again === undefined ? {} : { again: async () => await again(outcome.name, signal) } })
      printFile(outcome)
    }
  }, () => signal.aborted || performance.now() > until, roomOfHost())
  if (!signal.aborted) for (const name of left.flatMap(({ names }) => names)) results.push({ outcome: notBegun(name, `the run was to begin no file after ${minutes} min`) })
  return results
}

async function main (options: TestOptions): Promise<number> {
  const total = newTotal()
  const interrupt = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupt.abort())
  const { tiers, filters } = options
  const present = await findTests(packageRoot, outDir)
  const files = present.filter(({ source }) => tiers.includes(tierOf(source)) && (filters.length === 0 || filters.some(filter => source.includes(filter))))
  if (files.length === 0) fail(total, `no test file matches ${filters.join(', ')}`)
  const durations = await readDurations(durationsFile)
  const { now, left } = options.share && !playsWholeTables ? shareOfFiles(files, durations, partOfCommit(SHARES, 'files')) : { now: files, left: [] }
  const results = await runAll(await jobsOf(now, durations, options), interrupt.signal, options.minutes)
  for (const { source } of left) results.push({ outcome: notBegun(source, 'another commit has it: of the long tier each has a share') })
  const { outcomes, unsteady } = options.repeat && !interrupt.signal.aborted
    ? await repeatFailed(results, printFile)
    : { outcomes: results.map(({ outcome }) => outcome), unsteady: [] }
  for (const outcome of outcomes) add(total, outcome)
  if (interrupt.signal.aborted) fail(total, 'interrupted')
  if (options.record) await recordDurations(durationsFile, durations, total.outcomes, present.map(({ source }) => source))
  if (options.times) console.log(['', ...timesOf(total.outcomes)].join('\n'))
  printSummary(total, unsteady)
  return total.count.failed === 0 && total.count.passed > 0 ? 0 : 1
}

async function run (): Promise<number> {
  try {
    return await main(parseOptions(process.argv.slice(2)))
  } catch (error) {
    console.log(error instanceof Error ? error.message : String(error))
    console.log('0 passed, 1 failed')
    return 1
  }
}

process.exitCode = await run()
