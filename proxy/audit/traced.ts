// Requests that the server makes traces of, kept until it asks for them; of too many, the oldest are dropped. They are taken from lines on their way into the log, which does not keep the steps.
import type { TracedEntry } from '../contract/control.ts'
import { withoutTrace } from './line.ts'
import type { LineTaker } from './pipe.ts'

const MOST_LINES = 4096
const MOST_BYTES = 4 * 1024 * 1024

export class TracedRequests implements LineTaker {
  readonly #log: LineTaker
  #lines: string[] = []
  #bytes = 0
  /** whether the server takes traces; otherwise nothing is kept */
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

  /** Returns all kept requests and forgets them. */
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

/** Empty for an invalid line: a worker may have been killed while it wrote one. */
function entryOf (line: string): TracedEntry[] {
  try {
    const entry: TracedEntry = JSON.parse(line)
    return [entry]
  } catch (error) {
    if (error instanceof SyntaxError) return []
    throw error
  }
}
