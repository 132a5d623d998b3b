// Takes the values of build secrets out of output as it comes, wherever its pieces are cut.

/** A shorter line of a secret would be found in anything. */
const MIN_BYTES = 4
const MASK = Buffer.from('***')
const NEWLINE = 0x0a

export interface Mask {
  /** The piece without secrets; the end of it may be held back until the next one. */
  push (chunk: Buffer): Buffer
  /** What was held back. */
  end (): Buffer
}

/** Each line of each secret is taken out, since output is made of lines. */
export function createMask (secrets: Iterable<Buffer>): Mask {
  const patterns = patternsOf(secrets)
  let held: Buffer = Buffer.alloc(0)
  return {
    push (chunk) {
      if (patterns.length === 0) return chunk
      const { masked, rest } = scan(Buffer.concat([held, chunk]), patterns, false)
      held = rest
      return masked
    },
    end () {
      const { masked } = scan(held, patterns, true)
      held = Buffer.alloc(0)
      return masked
    }
  }
}

/** The longest first, so that one secret inside another leaves no rest. */
function patternsOf (secrets: Iterable<Buffer>): Buffer[] {
  const found = new Map<string, Buffer>()
  for (const secret of secrets) {
    // latin1 keeps every byte as it is
    for (const line of secret.toString('latin1').split(/\r?\n/)) {
      for (const form of [line, line.trim()]) if (form.length >= MIN_BYTES) found.set(form, Buffer.from(form, 'latin1'))
    }
  }
  return [...found.values()].sort((a, b) => b.length - a.length)
}

function scan (data: Buffer, patterns: readonly Buffer[], isEnd: boolean): { masked: Buffer, rest: Buffer } {
  const out: Buffer[] = []
  let from = 0
  for (;;) {
    const hit = firstHit(data, patterns, from)
    // What may be the beginning of a secret waits, also when a shorter one has been found in it.
    const stop = isEnd ? data.length : beginning(data, patterns, from)
    if (hit === undefined || stop <= hit.at) {
      out.push(data.subarray(from, stop))
      return { masked: Buffer.concat(out), rest: Buffer.from(data.subarray(stop)) }
    }
    out.push(data.subarray(from, hit.at), MASK)
    from = hit.at + hit.length
  }
}

function firstHit (data: Buffer, patterns: readonly Buffer[], from: number): { at: number, length: number } | undefined {
  let first: { at: number, length: number } | undefined
  for (const pattern of patterns) {
    const at = data.indexOf(pattern, from)
    if (at !== -1 && (first === undefined || at < first.at)) first = { at, length: pattern.length }
  }
  return first
}

/** Where the end of the data begins to look like a secret; no secret has a newline in it. */
function beginning (data: Buffer, patterns: readonly Buffer[], from: number): number {
  const longest = patterns[0]?.length ?? 0
  const start = Math.max(from, data.length - longest + 1, data.lastIndexOf(NEWLINE) + 1)
  for (let at = start; at < data.length; at++) {
    const end = data.subarray(at)
    if (patterns.some((pattern) => pattern.length > end.length && pattern.subarray(0, end.length).equals(end))) return at
  }
  return data.length
}
