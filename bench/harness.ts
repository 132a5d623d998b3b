// Measures one thing, or several things in turn, and prints each figure as one line of JSON.

export interface Samples { readonly median: number, readonly min: number, readonly max: number, readonly n: number }

/** The wanted ratio. A figure that misses it is printed like any other. */
export interface Target { readonly ratioAtMost?: number, readonly ratioAtLeast?: number, readonly holds: boolean }

export interface Figure extends Samples {
  readonly name: string
  readonly unit: string
  /** the other side of a comparison, measured alternately in the same run */
  readonly other?: Samples & { readonly name: string }
  /** our median divided by the other's */
  readonly ratio?: number
  readonly target?: Target
  /** what a reader must know to repeat the measurement */
  readonly note?: string
  /** where and under what VMs ran, if that was asked for */
  readonly host?: string
}

/** The measurements of one side. */
export interface Series { readonly name: string, readonly values: number[] }

/** Stores a measurement, unless the run is one to warm up. */
export type Keep = (series: Series, value: number) => void

export interface Turns {
  readonly runs: number
  /** runs at the start whose figures are discarded: caches are cold then */
  readonly warmUps?: number
  /** Each function measures something once. Its number counts from 0, the warm-ups included. */
  readonly sides: ReadonlyArray<(run: number, keep: Keep) => Promise<void>>
}

export function series (name: string): Series {
  return { name, values: [] }
}

/** Lets the sides measure in turn. The first side changes from run to run, so that no side always comes after the same one. */
export async function takeTurns ({ runs, warmUps = 1, sides }: Turns): Promise<void> {
  for (let run = 0; run < runs + warmUps; run++) {
    const isKept = run >= warmUps
    const keep: Keep = ({ name, values }, value) => {
      if (isKept) values.push(value)
      process.stderr.write(`${isKept ? `run ${run + 1 - warmUps}/${runs}` : 'warm-up'}: ${name}: ${round(value)}\n`)
    }
    const first = run % sides.length
    for (const side of [...sides.slice(first), ...sides.slice(0, first)]) await side(run, keep)
  }
}

export interface FigureOptions {
  readonly other?: Series
  /** the largest ratio that is wanted */
  readonly ratioAtMost?: number
  /** the smallest */
  readonly ratioAtLeast?: number
  readonly note?: string
}

/** The statistics of a side's measurements, beside those of another side if there is one. */
export function figureOf (name: string, unit: string, ours: readonly number[], { other, note, ...wanted }: FigureOptions = {}): Figure {
  const mine = summarize(ours)
  const theirs = other === undefined ? undefined : { name: other.name, ...summarize(other.values) }
  const ratio = theirs === undefined ? undefined : round(mine.median / theirs.median)
  return {
    name,
    unit,
    ...mine,
    ...theirs === undefined ? {} : { other: theirs, ratio },
    ...ratio === undefined ? {} : targetOf(ratio, wanted),
    ...note === undefined ? {} : { note }
  }
}

function targetOf (ratio: number, { ratioAtMost, ratioAtLeast }: Pick<FigureOptions, 'ratioAtMost' | 'ratioAtLeast'>): { target?: Target } {
  if (ratioAtMost === undefined && ratioAtLeast === undefined) return {}
  const holds = ratio <= (ratioAtMost ?? Infinity) && ratio >= (ratioAtLeast ?? -Infinity)
  return { target: { ...ratioAtMost === undefined ? {} : { ratioAtMost }, ...ratioAtLeast === undefined ? {} : { ratioAtLeast }, holds } }
}

export interface Comparison {
  readonly name: string
  readonly unit: string
  readonly otherName: string
  readonly runs: number
  readonly note?: string
  /** one measurement of ours, in `unit` */
  readonly ours: (run: number) => Promise<number>
  /** one measurement of the other side, in `unit` */
  readonly other: (run: number) => Promise<number>
}

/** Measures two sides in turn. */
export async function compare ({ name, unit, otherName, runs, note, ours, other }: Comparison): Promise<Figure> {
  const mine = series(name)
  const theirs = series(otherName)
  await takeTurns({
    runs,
    sides: [
      async (run, keep) => keep(mine, await ours(run)),
      async (run, keep) => keep(theirs, await other(run))
    ]
  })
  return figureOf(name, unit, mine.values, { other: theirs, note })
}

/** The median and the extremes of some measurements. */
export function summarize (values: readonly number[]): Samples {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: round(quantile(sorted, 0.5)), min: round(sorted[0] ?? NaN), max: round(sorted.at(-1) ?? NaN), n: sorted.length }
}

/** The quantile of sorted measurements, interpolated between two of them where it falls there. */
export function quantile (sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? NaN
  const above = sorted[Math.ceil(at)] ?? NaN
  return below + (above - below) * (at - Math.floor(at))
}

let host: string | undefined

/** Says where the figures that are printed from now on were measured. */
export function measuredOn (place: string | undefined): void {
  host = place
}

/** Prints a figure. Nothing else is written to standard output. */
export function print (figure: Figure): void {
  process.stdout.write(`${JSON.stringify({ ...figure, host })}\n`)
}

function round (value: number): number {
  return Number(value.toPrecision(4))
}
