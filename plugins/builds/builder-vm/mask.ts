// Removes the values of build secrets from a stream of output, however it is cut into pieces.
import { Patterns } from './patterns.ts'

/** A shorter line of a secret would occur everywhere. */
const MIN_BYTES = 4
const MASK = Buffer.from('***')

export interface Mask {
  /** The piece without secrets; its end may be held back until the next piece. */
  push (chunk: Buffer): Buffer
  /** What was held back. */
  end (): Buffer
}

/** Bytes that belong to secrets, from `start` to before `end`. */
interface Run { start: number, readonly end: number, isTold: boolean }

/** Each line of each secret is removed separately, since output consists of lines. Overlapping secrets are removed completely. Each byte is read once, however many secrets there are. */
export function createMask (secrets: Iterable<Buffer>): Mask {
  const patterns = new Patterns(linesOf(secrets))
  let held: Buffer = Buffer.alloc(0)
  /** in the held bytes, in order and without overlaps */
  let runs: Run[] = []
  let state = Patterns.START

  const find = (chunk: Buffer): void => {
    for (let index = 0; index < chunk.length; index++) {
      state = patterns.next(state, chunk[index] ?? 0)
      const length = patterns.endingAt(state)
      if (length === 0) continue
      const end = held.length + index + 1
      addRun(runs, { start: end - length, end, isTold: false })
    }
  }
  /** Returns the bytes before `stop`. */
  const take = (data: Buffer, stop: number): Buffer => {
    const out: Buffer[] = []
    let from = 0
    for (const { start, end, isTold } of runs) {
      if (start >= stop) break
      out.push(data.subarray(from, start))
      if (!isTold) out.push(MASK)
      from = Math.min(end, stop)
    }
    out.push(data.subarray(from, stop))
    runs = runs.filter(({ end }) => end > stop).map(({ start, end, isTold }) => ({ start: Math.max(start - stop, 0), end: end - stop, isTold: isTold || start < stop }))
    held = Buffer.from(data.subarray(stop))
    return Buffer.concat(out)
  }
  return {
    push (chunk) {
      if (patterns.isEmpty) return chunk
      find(chunk)
      const data = Buffer.concat([held, chunk])
      // The possible beginning of a secret is held back.
      return take(data, data.length - patterns.begunAt(state))
    },
    end () {
      state = Patterns.START
      return take(held, held.length)
    }
  }
}

/** Adds a run that ends behind all others, and merges those that it overlaps. */
function addRun (runs: Run[], run: Run): void {
  for (let last = runs.at(-1); last !== undefined && last.end > run.start; last = runs.at(-1)) {
    if (last.start <= run.start) {
      run.start = last.start
      run.isTold = last.isTold
    }
    runs.pop()
  }
  runs.push(run)
}

function linesOf (secrets: Iterable<Buffer>): Buffer[] {
  const found = new Set<string>()
  for (const secret of secrets) {
    // latin1 keeps every byte as it is
    for (const line of secret.toString('latin1').split(/\r?\n/)) {
      for (const form of [line, line.trim()]) if (form.length >= MIN_BYTES) found.add(form)
    }
  }
  return [...found].map((form) => Buffer.from(form, 'latin1'))
}
