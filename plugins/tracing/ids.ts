// Random ids of traces and spans, in W3C's form. They are cut from a long random text, since asking for random bytes one id at a time costs more than all else of a span.
import { randomBytes } from 'node:crypto'

const POOL_BYTES = 8192
const NONE = /^0+$/

let pool = ''
let used = 0

/** 32 hexadecimal digits, not all of them 0. */
export function newTraceId (): string {
  return digits(32)
}

/** 16 hexadecimal digits, not all of them 0. */
export function newSpanId (): string {
  return digits(16)
}

function digits (count: number): string {
  if (used + count > pool.length) {
    pool = randomBytes(POOL_BYTES).toString('hex')
    used = 0
  }
  const id = pool.slice(used, used += count)
  return id.startsWith('0000') && NONE.test(id) ? digits(count) : id
}
