// The places of a slider: sizes and numbers that people choose, between the smallest and the largest that is possible.

export interface Range {
  readonly kind: 'count' | 'bytes'
  readonly min: number
  /** what is possible now; less than `min`: nothing is */
  readonly max: number
  /** what the server takes when nothing is said; absent: not known yet */
  readonly standard?: number
  /** where the limit comes from, for people */
  readonly text: string
}

const UNITS: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }
const MB = 2 ** 20
const GB = 2 ** 30

/** Powers of two and what is half-way between them; the least and the most of the range are among them. */
export function stopsOf ({ kind, min, max }: Range): readonly number[] {
  if (max < min || max === Infinity) return []
  if (kind === 'count') return Array.from({ length: Math.floor(max) - min + 1 }, (_, index) => min + index)
  const whole = max >= 2 * GB ? GB : MB
  const last = Math.floor(max / whole) * whole
  const stops = [min]
  for (let step = MB; step < last; step *= 2) stops.push(...[step, step * 1.5].filter((size) => size > min && size < last))
  return last > min ? [...stops, last] : stops
}

/** As the API takes it: `2`, `512MB`, `1GB`. */
export function textOf ({ kind }: Pick<Range, 'kind'>, value: number): string {
  return kind === 'count' ? String(value) : value % GB === 0 ? `${value / GB}GB` : `${Math.round(value / MB)}MB`
}

/** Of what was typed; undefined when it is no number or size. */
export function valueOf ({ kind }: Pick<Range, 'kind'>, typed: string): number | undefined {
  const [, digits, unit] = /^(\d{1,15}(?:\.\d{1,15})?) ?([KMGT])?(?:I?B)?$/i.exec(typed.trim()) ?? []
  if (digits === undefined || (kind === 'count' && unit !== undefined)) return undefined
  return Number(digits) * (unit === undefined ? 1 : UNITS[unit.toUpperCase()] ?? 1)
}

/** The place that is nearest from below. */
export function placeOf (stops: readonly number[], value: number): number {
  return Math.max(0, stops.findLastIndex((stop) => stop <= value))
}
