// The sizes that a manifest names. A stranger wrote it, and they go into the database and into answers.

/** Their sum, `bytes`; undefined when one of them, or the sum, is no size: not a whole number, below zero, or too large to be counted exactly. */
export function sumOfSizes (sizes: readonly number[]): number | undefined {
  let sum = 0
  for (const size of sizes) {
    sum += size
    if (!Number.isSafeInteger(size) || size < 0 || !Number.isSafeInteger(sum)) return undefined
  }
  return sum
}
