// A graph over time. The library that draws it is loaded when the first one is shown.
import type uPlot from 'uplot'
import { useEffect, useRef } from 'preact/hooks'

interface GraphProps {
  readonly title: string
  /** seconds since the epoch */
  readonly times: readonly number[]
  readonly lines: ReadonlyArray<{ readonly label: string, readonly values: readonly number[] }>
  readonly format: (value: number) => string
}

const HEIGHT = 130

export function Graph ({ title, times, lines, format }: GraphProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const data: uPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])]
  const latest = useRef(data)
  latest.current = data
  useEffect(() => {
    let isGone = false
    const observer = new ResizeObserver(() => { plot.current?.setSize({ width: place.current?.clientWidth ?? 300, height: HEIGHT }) })
    void import('./plot.ts').then(({ draw }) => {
      if (isGone || place.current === null) return
      plot.current = draw(place.current, lines.map(({ label }) => label), format, latest.current, HEIGHT)
      observer.observe(place.current)
    })
    return () => {
      isGone = true
      observer.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [])
  useEffect(() => { plot.current?.setData(data) }, [times.length, times.at(-1)])
  const last = lines.map(({ label, values }) => `${label} ${format(values.at(-1) ?? 0)}`).join(', ')
  return <figure class='graph'><figcaption>{title} <span class='quiet'>{times.length < 2 ? 'the first figures come in some seconds' : last}</span></figcaption><div ref={place} role='img' aria-label={`${title} over the last minutes: ${last}`} /></figure>
}
