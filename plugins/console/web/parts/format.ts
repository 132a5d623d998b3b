// Numbers and times as people read them.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function bytes (value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  let index = 0
  let left = value
  while (left >= 1024 && index < UNITS.length - 1) { left /= 1024; index++ }
  return `${left >= 100 || index === 0 ? Math.round(left) : left.toFixed(1)} ${UNITS[index] ?? ''}`
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const STEPS: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [['year', 31_536_000], ['month', 2_592_000], ['day', 86_400], ['hour', 3600], ['minute', 60]]

/** `3 minutes ago` */
export function ago (at: number, now: number): string {
  const seconds = Math.round((at - now) / 1000)
  for (const [unit, size] of STEPS) if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  return Math.abs(seconds) < 10 ? 'just now' : seconds < 0 ? 'under 1 min ago' : 'in less than a minute'
}

/** in the reader's zone, which it names */
export function exact (at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' })
}

export function milliseconds (value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return value < 1000 ? `${Math.round(value)} ms` : value < 60_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.floor(value / 60_000)} min ${Math.round(value % 60_000 / 1000)} s`
}
