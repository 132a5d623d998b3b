// Finds many byte strings at once in a stream (Aho and Corasick): a tree of all of them, and for each node the longest proper suffix that is also in the tree.

const ROOT = 0
const BYTES = 256

export class Patterns {
  /** the state before the first byte */
  static readonly START = ROOT
  readonly isEmpty: boolean
  readonly #byte: Uint8Array
  /** a node's children are a list: its first child, and that one's siblings */
  readonly #child: Int32Array
  readonly #sibling: Int32Array
  /** bytes up to a node; for one without children those up to the longest shorter beginning that has some */
  readonly #begun: Int32Array
  /** the node of the longest shorter beginning that ends with the same bytes */
  readonly #shorter: Int32Array
  /** length of the longest pattern that ends here; 0: none */
  readonly #ending: Int32Array
  /** the root's children, by their byte: most bytes begin nothing */
  readonly #first = new Int32Array(BYTES)
  #count = 1

  constructor (patterns: readonly Buffer[]) {
    const most = patterns.reduce((sum, { length }) => sum + length, 1)
    this.isEmpty = patterns.length === 0
    this.#byte = new Uint8Array(most)
    this.#child = new Int32Array(most)
    this.#sibling = new Int32Array(most)
    this.#begun = new Int32Array(most)
    this.#shorter = new Int32Array(most)
    this.#ending = new Int32Array(most)
    for (const pattern of patterns) this.#add(pattern)
    this.#link()
  }

  next (state: number, byte: number): number {
    for (let node = state; node !== ROOT; node = this.#shorter[node] ?? ROOT) {
      const child = this.#childOf(node, byte)
      if (child !== ROOT) return child
    }
    return this.#first[byte] ?? ROOT
  }

  /** Length of the longest pattern that ends with the last byte; 0: none does. */
  endingAt (state: number): number {
    return this.#ending[state] ?? 0
  }

  /** How many of the last bytes are the beginning of a pattern that has not come as a whole. */
  begunAt (state: number): number {
    return this.#begun[state] ?? 0
  }

  #childOf (node: number, byte: number): number {
    if (node === ROOT) return this.#first[byte] ?? ROOT
    let child = this.#child[node] ?? ROOT
    while (child !== ROOT && this.#byte[child] !== byte) child = this.#sibling[child] ?? ROOT
    return child
  }

  #add (pattern: Buffer): void {
    let node = ROOT
    for (const byte of pattern) {
      let child = this.#childOf(node, byte)
      if (child === ROOT) {
        child = this.#count++
        this.#byte[child] = byte
        this.#begun[child] = (this.#begun[node] ?? 0) + 1
        this.#sibling[child] = this.#child[node] ?? ROOT
        this.#child[node] = child
        if (node === ROOT) this.#first[byte] = child
      }
      node = child
    }
    this.#ending[node] = pattern.length
  }

  /** Level by level: those of shorter beginnings are known then. */
  #link (): void {
    const order = new Int32Array(this.#count)
    let filled = 1
    for (let at = 0; at < filled; at++) {
      const node = order[at] ?? ROOT
      for (let child = this.#child[node] ?? ROOT; child !== ROOT; child = this.#sibling[child] ?? ROOT) {
        const shorter = node === ROOT ? ROOT : this.next(this.#shorter[node] ?? ROOT, this.#byte[child] ?? 0)
        this.#shorter[child] = shorter
        if (this.#ending[child] === 0) this.#ending[child] = this.#ending[shorter] ?? 0
        if (this.#child[child] === ROOT) this.#begun[child] = this.#begun[shorter] ?? 0
        order[filled++] = child
      }
    }
  }
}
