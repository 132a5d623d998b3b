// When a failed delivery is repeated.

export interface Backoff {
  readonly firstMs: number
  readonly mostMs: number
  /** of all pauses together */
  readonly totalMs: number
}

/** The pause after this many failures in a row, or `undefined` when it is given up. It adds up pauses and reads no clock, so setting the clock ends no webhook. */
export function pauseAfter (failures: number, { firstMs, mostMs, totalMs }: Backoff, random: () => number = Math.random): number | undefined {
  let sum = 0
  let pause = firstMs
  for (let failure = 1; failure < failures && sum < totalMs; failure++) {
    sum += pause
    pause = Math.min(pause * 2, mostMs)
  }
  // Jitter: when a receiver of many webhooks comes back, they must not all call at once.
  return sum >= totalMs ? undefined : pause * (1 + random()) / 2
}
