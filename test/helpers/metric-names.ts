// What the names and labels of metrics must be like, whoever publishes them: units in the names as Prometheus has them, and labels whose values nobody from outside can make more of.

export interface Metric {
  readonly name: string
  readonly type: string
  readonly labels: ReadonlySet<string>
  /** sets of labels with a value now */
  readonly series: number
}

/** Labels whose values are lists in the program, or numbers of its own processes. */
const BOUNDED = new Set(['method', 'route', 'status', 'state', 'from', 'to', 'kind', 'source', 'result', 'reason', 'operation', 'way', 'direction', 'outcome', 'protocol', 'worker', 'type', 'attached', 'le'])
const MOST_SERIES = 300
/** units that have a base unit: seconds, bytes, or a ratio */
const WRONG_UNIT = /_(?:ms|us|ns|milliseconds|microseconds|minutes|hours|days|kb|kib|mb|mib|gb|gib|kilobytes|megabytes|percent)(?:_|$)/

/** The metrics of an exposition, without those that every process of Node has. */
export function readMetrics (text: string): Metric[] {
  const lines = text.split('\n')
  const types = lines.flatMap(line => {
    const [, name, type] = /^# TYPE ([a-z0-9_]+) ([a-z]+)$/.exec(line) ?? []
    return name === undefined || type === undefined || /^(?:process|nodejs)_/.test(name) ? [] : [{ name, type }]
  })
  return types.map(({ name, type }) => {
    const own = lines.filter(line => line.startsWith(`${name}{`) || line.startsWith(`${name} `) || (type === 'histogram' && line.startsWith(`${name}_bucket{`)))
    const labels = own.flatMap(line => [...line.slice(0, line.lastIndexOf('}') + 1).matchAll(/[{,]([a-z_]+)="/g)].map(([, label = '']) => label))
    return { name, type, labels: new Set(labels), series: own.filter(line => !/le="(?!\+Inf)/.test(line)).length }
  })
}

/** Every name that an expression may use: those of a histogram's parts, too, and those of Node. */
export function usableNames (text: string): Set<string> {
  return new Set([...text.matchAll(/^# TYPE ([a-z0-9_]+) ([a-z]+)$/gm)].flatMap(([, name = '', type]) => type === 'histogram' ? ['_bucket', '_sum', '_count'].map(part => `${name}${part}`) : [name]))
}

export function faultsOf ({ name, type, labels, series }: Metric): string[] {
  const faults: string[] = []
  const unless = (holds: boolean, fault: string): void => { if (!holds) faults.push(`${name} ${fault}`) }
  unless(/^berth_[a-z][a-z0-9_]*$/.test(name), 'does not begin with berth_')
  unless((type === 'counter') === name.endsWith('_total'), `is a ${type}: counters alone end in _total`)
  unless(type !== 'histogram' || /_(?:seconds|bytes)$/.test(name), 'is a histogram without its unit at the end')
  unless(!WRONG_UNIT.test(name), 'has a unit that is no base unit')
  unless(!/_(?:duration|latency|lag|stall|cpu|age)(?:_|$)/.test(name) || /_seconds(?:_total)?$/.test(name), 'is a time and does not end in _seconds')
  unless(!/_(?:memory|size|resident)(?:_|$)/.test(name) || /_bytes(?:_total)?$/.test(name), 'is a size and does not end in _bytes')
  unless(!/(?:^|_)ends?_(?:seconds|at)|_ends$|_(?:at|since|until)$/.test(name), 'is a moment and does not end in _timestamp_seconds')
  for (const label of labels) unless(BOUNDED.has(label), `has the label ${label}, whose values are no list`)
  unless(series <= MOST_SERIES, `has ${series} series`)
  return faults
}
