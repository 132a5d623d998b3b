// When a delivery that failed is tried again.

export interface Backoff {
  readonly firstMs: number
  readonly mostMs: number
  /** of all pauses together */
  readonly totalMs: number
}

/** The pause after so many failures in a row, or `undefined` when it is given up. It counts pauses and reads no clock, so setting the clock gives nothing up. */
export function pauseAfter (failures: number, { firstMs, mostMs, totalMs }: Backoff, random: () => number = Math.random): number | undefined {
  let sum = 0
  let pause = firstMs
  for (let failure = 1; failure < failures && sum < totalMs; failure++) {
    sum += pause
    pause = Math.min(pause * 2, mostMs)
  }
  // Jitter: receivers of many webhooks that came back are not asked by all of them at once.
  return sum >= totalMs ? undefined : pause * (1 + random()) / 2
}
