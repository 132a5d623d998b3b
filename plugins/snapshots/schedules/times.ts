// When a schedule runs, and the names of its snapshots.
const MOST_JITTER_MS = 300_000
const JITTER_SHARE = 0.1
const DEFAULT_PREFIX = 'scheduled'

/** The first run of a new cadence. It is delayed a little by `chance` (0 to 1), so that schedules which were set together do not run together. */
export function firstRun (now: number, intervalMs: number, chance: number): number {
  return Math.round(now + intervalMs + chance * Math.min(intervalMs * JITTER_SHARE, MOST_JITTER_MS))
}

/** The next run of the same cadence after `now`. Missed runs are not made up for. */
export function nextRun (planned: number, intervalMs: number, now: number): number {
  return planned + Math.max(1, Math.floor((now - planned) / intervalMs) + 1) * intervalMs
}

/** Whether a run is planned for later than any schedule would plan it: the clock was ahead then, and was put back since. */
export function isOutOfReach (planned: number, intervalMs: number, now: number): boolean {
  return planned > firstRun(now, intervalMs, 1)
}

/** @example snapshotName('nightly', Date.UTC(2026, 0, 31, 12)) // nightly-20260131-120000 */
export function snapshotName (prefix: string | null, now: number): string {
  const [date = '', time = ''] = new Date(now).toISOString().slice(0, 19).replaceAll(/[-:]/g, '').split('T')
  return `${prefix ?? DEFAULT_PREFIX}-${date}-${time}`
}
