// Limits how much of a command's output is kept.

/** Collects bytes; of more than `maxBytes` it keeps only the end. */
export interface Tail {
  push (chunk: Buffer): void
  readonly overflowed: boolean
  text (): string
}

export function createTail (maxBytes: number): Tail {
  const chunks: Buffer[] = []
  let kept = 0
  let overflowed = false
  return {
    push (chunk) {
      chunks.push(chunk)
      kept += chunk.length
      while (kept > maxBytes) {
        overflowed = true
        const first = chunks[0] ?? Buffer.alloc(0)
        const surplus = kept - maxBytes
        if (first.length <= surplus) chunks.shift()
        else chunks[0] = first.subarray(surplus)
        kept -= Math.min(first.length, surplus)
      }
    },
    get overflowed () { return overflowed },
    text: () => Buffer.concat(chunks).toString('utf8')
  }
}

/** The last `count` lines that are not empty. */
export function lastLines (text: string, count: number): string {
  return text.split('\n').map((line) => line.trimEnd()).filter((line) => line !== '').slice(-count).join('\n')
}
