// Draws a graph in the page's colours.
import Plot from 'uplot'

export function draw (place: HTMLElement, labels: readonly string[], format: (value: number) => string, data: Plot.AlignedData, height: number): Plot {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' }
  return new Plot({
    width: place.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false },
    scales: { y: { range: (_self, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 64, values: (_self, values) => values.map(format) }],
    series: [{}, ...labels.map((label, index) => ({ label, stroke: colour(index === 0 ? '--accent' : '--second'), width: 1.5, points: { show: false }, ...index === 0 ? { fill: colour('--accent-soft') } : {} }))]
  }, data, place)
}
