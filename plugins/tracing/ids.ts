// Random ids of traces and spans. They are cut from a longer random text: to ask for random bytes one id at a time costs more than all else of a span.
import { randomFillSync } from 'node:crypto'

const pool = Buffer.alloc(8192)
let used = pool.length

/** 32 hexadecimal digits, not all of them 0, as W3C wants them. */
export function newTraceId (): string {
  return hex(16)
}

/** 16 hexadecimal digits, not all of them 0. */
export function newSpanId (): string {
  return hex(8)
}

/** Writes an id of so many bytes to a place that has room for it: for spans whose id nobody else is told. */
export function drawId (bytes: number, target: Uint8Array, at: number): void {
  const from = take(bytes)
  for (let index = 0; index < bytes; index++) target[at + index] = pool[from + index] ?? 0
}

function hex (bytes: number): string {
  const from = take(bytes)
  return pool.toString('hex', from, from + bytes)
}

/** Where in the pool the next id begins. */
function take (bytes: number): number {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const from = used
  used += bytes
  for (let index = from; index < used; index++) if (pool[index] !== 0) return from
  return take(bytes)
}
