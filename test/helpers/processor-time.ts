// How long a thread held its processor: what an event loop was blocked at most, whatever else the machine was doing.
import { readFileSync } from 'node:fs'

/** Nobody's input may hold the event loop for longer, on a machine where nothing else slows the processor down. */
const LIMIT_MS = 200
/** what `sample` takes on such a machine */
const SAMPLE_MS = 30

/** Milliseconds for which the main thread of a process has run; this one's when none is named. */
export function mainThreadMs (pid = process.pid): number {
  const [nanoseconds = ''] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
  return Number(nanoseconds) / 1e6
}

/** Milliseconds that `work`, which waits for nothing, kept this thread. */
export function msOf (work: () => void): number {
  const start = mainThreadMs()
  work()
  return mainThreadMs() - start
}

/** The most that one input may take, on a machine as fast as this one is at this moment. */
export function limitMs (): number {
  return LIMIT_MS * Math.max(1, msOf(sample) / SAMPLE_MS)
}

let sink = 0

function sample (): void {
  for (let round = 0; round < 40; round++) {
    const text = JSON.stringify(Array.from({ length: 2000 }, (_, index) => ({ name: `n${index}`, value: index * round })))
    sink += JSON.parse(text).length
  }
  if (sink === 0) throw new Error('nothing was parsed')
}
