// The newest lines of the log, in memory, for people who look at the server from afar. A line costs one entry of a ring, and nothing is read of it until somebody asks.
import type { DestinationStream } from 'pino'

/** The service `recentLog`. Lines have numbers, from 0 on at each start of the server. */
export interface RecentLog {
  /** the number of the oldest line that is kept */
  readonly first: number
  /** the number that the next line will have */
  readonly next: number
  /** One line as it was written, without its newline; undefined when it is not kept any more, or was not written yet. */
  at (number: number): string | undefined
  /** Calls the listener after each line, which must not log anything itself. Returns the unsubscriber. */
  onLine (listener: () => void): () => void
}

export interface KeptLog extends RecentLog {
  /** Passes what is written on, and keeps it. */
  before (destination: DestinationStream): DestinationStream
}

const MOST_LINES = 20_000
/** JavaScript keeps a text with two bytes for each character at most, and an entry of the ring needs some, too. */
const BYTES_OF_A_CHARACTER = 2
const BYTES_OF_AN_ENTRY = 64
/** Of a longer line only a piece is kept: one of them must not take the place of all others. */
const LONGEST = 32 * 1024
const PIECE = 4 * 1024

class Ring implements KeptLog {
  readonly #maxBytes: number
  readonly #maxLines: number
  readonly #lines: (string | undefined)[] = []
  readonly #listeners = new Set<() => void>()
  #first = 0
  #next = 0
  #bytes = 0

  constructor (maxBytes: number, maxLines: number) {
    this.#maxBytes = maxBytes
    this.#maxLines = maxLines
  }

  get first (): number { return this.#first }
  get next (): number { return this.#next }

  at (number: number): string | undefined {
    return number < this.#first || number >= this.#next ? undefined : this.#lines[number % this.#maxLines]?.trimEnd()
  }

  onLine (listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  before (destination: DestinationStream): DestinationStream {
    return this.#maxBytes === 0 ? destination : new Passing(destination, (line) => { this.#keep(line) })
  }

  #keep (line: string): void {
    const kept = line.length > LONGEST ? shortened(line) : line
    if (this.#next - this.#first === this.#maxLines) this.#dropOldest()
    this.#lines[this.#next % this.#maxLines] = kept
    this.#next++
    this.#bytes += costOf(kept)
    while (this.#bytes > this.#maxBytes && this.#first < this.#next) this.#dropOldest()
    for (const listener of this.#listeners) listener()
  }

  #dropOldest (): void {
    this.#bytes -= costOf(this.#lines[this.#first % this.#maxLines] ?? '')
    this.#lines[this.#first % this.#maxLines] = undefined
    this.#first++
  }
}

/** @param maxBytes of all kept lines together; 0 keeps none */
export function createRecentLog (maxBytes: number, maxLines = MOST_LINES): KeptLog {
  return new Ring(maxBytes, maxLines)
}

function costOf (line: string): number {
  return line.length * BYTES_OF_A_CHARACTER + BYTES_OF_AN_ENTRY
}

/** Still one JSON object with the line's time, level and plugin, and the begin of its message. */
function shortened (line: string): string {
  const { level, time, pid, plugin, msg } = JSON.parse(line) as Readonly<Record<string, unknown>>
  return JSON.stringify({ level, time, pid, plugin, cut: line.length, msg: String(msg ?? '').slice(0, PIECE) })
}

class Passing implements DestinationStream {
  readonly #destination: DestinationStream & { flushSync?: () => void }
  readonly #keep: (line: string) => void

  constructor (destination: DestinationStream, keep: (line: string) => void) {
    this.#destination = destination
    this.#keep = keep
  }

  write (line: string): void {
    this.#destination.write(line)
    this.#keep(line)
  }

  /** A fatal line is out before the process ends. */
  flushSync (): void {
    this.#destination.flushSync?.()
  }
}
