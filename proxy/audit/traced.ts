// Requests that the server is to make traces of, until it asks for them: bounded, the oldest go. They pass by here on their way into the log, which does not keep their steps.
import type { TracedEntry } from '../contract/control.ts'
import { withoutTrace } from './line.ts'
import type { LineTaker } from './pipe.ts'

const MOST_LINES = 4096
const MOST_BYTES = 4 * 1024 * 1024

export class TracedRequests implements LineTaker {
  readonly #log: LineTaker
  #lines: string[] = []
  #bytes = 0
  /** whether the server takes traces; what nobody asks for is not kept */
  isOn = false
  /** requests that made room for later ones */
  dropped = 0

  constructor (log: LineTaker) {
    this.#log = log
  }

  add (vm: string, written: string): void {
    const { line, isTraced } = withoutTrace(written)
    if (isTraced && this.isOn) this.#keep(written)
    this.#log.add(vm, line)
  }

  async room (): Promise<void> {
    await this.#log.room()
  }

  /** All that are here, which are then gone from here. */
  take (): TracedEntry[] {
    const lines = this.#lines
    this.#lines = []
    this.#bytes = 0
    return lines.flatMap(entryOf)
  }

  #keep (line: string): void {
    this.#lines.push(line)
    this.#bytes += line.length
    while (this.#lines.length > MOST_LINES || this.#bytes > MOST_BYTES) {
      this.#bytes -= this.#lines.shift()?.length ?? 0
      this.dropped++
    }
  }
}

/** Nothing for a line that is none: a worker may have been killed in the middle of one. */
function entryOf (line: string): TracedEntry[] {
  try {
    const entry: TracedEntry = JSON.parse(line)
    return [entry]
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}
