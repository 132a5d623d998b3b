// What a fuzz target is. One file of this folder is one name of `npm run fuzz -- NAME`; what it exports as `fuzz` is all that a new name needs.

/** What became of one case. */
export interface FuzzResult {
  /** the case, for whoever has to look at it */
  readonly input: string
  /** what was wrong; absent when all was well */
  readonly fault?: string
}

export interface Fuzz {
  /** seeds that failed once; they run with the tests */
  readonly seeds: readonly number[]
  /** whether a case takes a second or so: then a few of them run in the long tier, and none in the fast one */
  readonly isSlow?: boolean
  /** Starts what is attacked. What it gives runs the case that a source of numbers stands for; the same numbers make the same case. `atEnd` takes what undoes the start. */
  start (atEnd: (work: () => unknown) => void): Promise<(random: Random) => Promise<FuzzResult>>
}

/** Numbers that look random and follow from a seed (mulberry32). */
export class Random {
  #state: number

  constructor (seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 to below `end`. */
  below (end: number): number {
    this.#state = this.#state + 0x6d2b79f5 >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ mixed >>> 15, mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61)
    return ((mixed ^ mixed >>> 14) >>> 0) % end
  }

  /** Whether something happens that happens once in `times`. */
  once (times: number): boolean {
    return this.below(times) === 0
  }

  pick<T> (items: readonly [T, ...T[]] | readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('there is nothing to pick from')
    return item
  }

  /** Up to `most` results of something. */
  many<T> (most: number, make: () => T): T[] {
    return Array.from({ length: this.below(most + 1) }, make)
  }

  /** Changes a few bytes: one is another, goes, comes twice, or a stretch of them moves. */
  mutate (bytes: Buffer, most: number): Buffer {
    let changed = bytes
    for (let count = this.below(most + 1); count > 0 && changed.length > 0; count--) {
      const at = this.below(changed.length)
      const [before, after] = [changed.subarray(0, at), changed.subarray(at)]
      const way = this.below(5)
      if (way === 0) changed = Buffer.concat([before, after.subarray(1)])
      else if (way === 1) changed = Buffer.concat([before, Buffer.from([this.below(256)]), after.subarray(1)])
      else if (way === 2) changed = Buffer.concat([before, Buffer.from([this.pick([0, 9, 10, 13, 32, 58, 59, 44, 127, 128, 255])]), after])
      else if (way === 3) changed = Buffer.concat([before, after.subarray(0, this.below(40)), after])
      else changed = before
    }
    return changed
  }

  /** Cuts bytes into pieces. */
  pieces (bytes: Buffer): Buffer[] {
    const cuts = this.many(3, () => this.below(bytes.length + 1)).sort((a, b) => a - b)
    return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
  }
}
