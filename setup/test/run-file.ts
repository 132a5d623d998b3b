// Runs test files, one or several in a process of their own, and counts what they report.
import { fileURLToPath } from 'node:url'
import { BoundedText } from './bounded-text.ts'
import { createCounter, type FileOutcome } from './count.ts'
import { createSharedCounter, type SharedResult } from './count-shared.ts'
import type { TestFile } from './files.ts'
import { startMeter, type Meter } from './processor-time.ts'
import { runProcess, type ProcessOptions } from './run-process.ts'

/** the part of a file's other output that is kept; shown when it fails */
const KEPT_BYTES = 64 * 1024

const sharedProcess = fileURLToPath(new URL('../../test/helpers/shared-process.js', import.meta.url))

export interface RunOptions extends Omit<ProcessOptions, 'boundSeconds'> {
  /** Seconds after which a file hangs. It is asked to end, and fails. */
  readonly bound: (file: TestFile) => number
  /** whether the processor time is wanted */
  readonly times?: boolean
}

let runs = 0

async function withMeter<T> (times: boolean, use: (meter: Meter | undefined) => Promise<T>): Promise<T> {
  const meter = times ? await startMeter(`berth-test-${process.pid}-${++runs}`) : undefined
  try {
    return await use(meter)
  } finally {
    await meter?.end()
  }
}

export async function runFile (file: TestFile, { bound, times = false, ...options }: RunOptions): Promise<FileOutcome> {
  return await withMeter(times, async (meter) => {
    const counter = createCounter(file.source)
    const said = new BoundedText(KEPT_BYTES)
    const ending = await runProcess([file.compiled], {
      ...options,
      boundSeconds: bound(file),
      wrap: meter?.wrap ?? (command => command),
      onStdout: (chunk) => { counter.parser.write(chunk) },
      onStderr: (chunk) => said.add(chunk)
    })
    counter.parser.end()
    return { ...counter.finish({ ...ending, said: said.toString() }), ...meter === undefined ? {} : { processorSeconds: await meter.seconds() } }
  })
}

/** Runs the files in one process. If it ends in one of them, those after that one run in another. */
export async function runFiles (files: readonly [TestFile, ...TestFile[]], options: RunOptions): Promise<FileOutcome[]> {
  const [first, second, ...others] = files
  if (second === undefined) return [await runFile(first, options)]
  const { outcomes, left: [next, ...rest] } = await runShared([first, second, ...others], options)
  return next === undefined || options.signal.aborted ? [...outcomes] : [...outcomes, ...await runFiles([next, ...rest], options)]
}

async function runShared (files: readonly [TestFile, ...TestFile[]], { bound, times = false, ...options }: RunOptions): Promise<SharedResult> {
  return await withMeter(times, async (meter) => {
    const readings: Array<Promise<number>> = []
    let said = new BoundedText(KEPT_BYTES)
    const take = (): string => {
      const text = said.toString()
      said = new BoundedText(KEPT_BYTES)
      return text
    }
    const counter = createSharedCounter(files, take, () => { if (meter !== undefined) readings.push(meter.seconds()) })
    const bounds = files.map(bound)
    const ending = await runProcess([sharedProcess, String(Math.max(...bounds)), ...files.map(({ compiled }) => compiled)], {
      ...options,
      boundSeconds: bounds.reduce((sum, seconds) => sum + seconds, 0),
      wrap: meter?.wrap ?? (command => command),
      onStdout: (chunk) => { counter.parser.write(chunk) },
      onStderr: (chunk) => said.add(chunk)
    })
    counter.parser.end()
    const { outcomes, left } = counter.finish(ending)
    const seconds = await Promise.all(readings)
    return { outcomes: outcomes.map((outcome, index) => ({ ...outcome, ...timeOf(seconds, index) })), left }
  })
}

/** The processor time of a file, of what all had used at the end of each. */
function timeOf (seconds: readonly number[], index: number): { processorSeconds?: number } {
  const [before, after] = [index === 0 ? 0 : seconds[index - 1], seconds[index]]
  return before === undefined || after === undefined ? {} : { processorSeconds: after - before }
}
