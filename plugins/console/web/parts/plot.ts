// Draws a graph in the page's colours.
import Plot from 'uplot'

const clockTime = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })

/** A graph that has just begun is at least this much time wide, and its newest value is at the right. */
const LEAST_SECONDS = 60

export function draw (place: HTMLElement, labels: readonly string[], format: (value: number) => string, data: Plot.AlignedData, height: number): Plot {
  const style = getComputedStyle(document.documentElement)
  // Read at each drawing: the user may switch between light and dark.
  const colour = (name: string) => (): string => style.getPropertyValue(name).trim()
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' }
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const redraw = (): void => { plot.redraw() }
  const plot = new Plot({
    width: place.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false },
    scales: { x: { range: (_self, min, max) => [Math.min(min, max - LEAST_SECONDS), max] }, y: { range: (_self, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [{ ...axis, values: (_self, values) => values.map((value) => clockTime.format(value * 1000)) }, { ...axis, size: 64, values: (_self, values) => values.map((value, index) => format(value) === format(values[index - 1] ?? NaN) ? '' : format(value)) }],
    series: [{}, ...labels.map((label, index) => ({ label, stroke: colour(index === 0 ? '--accent' : '--second'), width: 1.5, points: { show: false }, ...index === 0 ? { fill: colour('--accent-soft') } : {} }))],
    hooks: { ready: [() => { dark.addEventListener('change', redraw) }], destroy: [() => { dark.removeEventListener('change', redraw) }] }
  }, data, place)
  return plot
}
