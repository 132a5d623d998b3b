// A slider beside a field: it types into the field what can be had, as far as the host's room goes.
import { placeOf, stopsOf, textOf, valueOf, type Range } from './range.ts'

interface SliderProps {
  readonly label: string
  readonly range: Range
  readonly typed: string
  /** id of what explains it */
  readonly describedBy: string
  readonly onType: (text: string) => void
}

export function Slider ({ label, range, typed, describedBy, onType }: SliderProps) {
  const stops = stopsOf(range)
  const last = stops.at(-1)
  if (last === undefined) return null
  const value = typed.trim() === '' ? range.standard : valueOf(range, typed)
  const place = placeOf(stops, value ?? range.standard ?? 0)
  const said = typed.trim() === '' ? `${range.standard === undefined ? '' : `${textOf(range, range.standard)}, `}as the server decides` : value === undefined ? 'not a size' : value > last ? `${typed}, more than there is` : typed
  return (
    <div class='slider'>
      <span aria-hidden='true'>{textOf(range, stops[0] ?? last)}</span>
      <input type='range' aria-label={`${label}: choose`} aria-valuetext={said} aria-describedby={describedBy} min={0} max={stops.length - 1} step={1} value={place} disabled={stops.length === 1} onInput={({ currentTarget }) => { onType(textOf(range, stops[Number(currentTarget.value)] ?? last)) }} />
      <span>{textOf(range, last)}</span>
    </div>
  )
}
