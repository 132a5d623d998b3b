// Measures one thing, or two things in turn, and prints each figure as one line of JSON.

export interface Samples { readonly median: number, readonly min: number, readonly max: number, readonly n: number }

export interface Figure extends Samples {
  readonly name: string
  readonly unit: string
  /** the other side of a comparison, measured alternately in the same run */
  readonly other?: Samples & { readonly name: string }
  /** our median divided by the other's */
  readonly ratio?: number
  /** what a reader must know to repeat it */
  readonly note?: string
}

export interface Comparison {
  readonly name: string
  readonly unit: string
  readonly otherName: string
  readonly runs: number
  /** runs at the start whose figures are thrown away: caches are cold then */
  readonly warmUps?: number
  readonly note?: string
  /** one measurement of ours, in `unit` */
  readonly ours: (run: number) => Promise<number>
  /** one measurement of the other side, in `unit` */
  readonly other: (run: number) => Promise<number>
}

/** Measures both sides in turn, with the order changing from run to run so that neither always goes first. */
export async function compare (comparison: Comparison): Promise<Figure> {
  const ours: number[] = []
  const others: number[] = []
  const warmUps = comparison.warmUps ?? 1
  for (let run = 0; run < comparison.runs + warmUps; run++) {
    const sides = run % 2 === 0 ? ['ours', 'other'] as const : ['other', 'ours'] as const
    for (const side of sides) {
      const value = await comparison[side](run)
      if (run >= warmUps) (side === 'ours' ? ours : others).push(value)
      process.stderr.write(`${comparison.name} run ${run + 1 - warmUps}/${comparison.runs} ${side}: ${round(value)} ${comparison.unit}\n`)
    }
  }
  const mine = summarize(ours)
  const other = summarize(others)
  return {
    name: comparison.name,
    unit: comparison.unit,
    ...mine,
    other: { name: comparison.otherName, ...other },
    ratio: round(mine.median / other.median),
    ...(comparison.note === undefined ? {} : { note: comparison.note })
  }
}

/** The median and the extremes of some measurements. */
export function summarize (values: readonly number[]): Samples {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (index: number): number => sorted[index] ?? NaN
  const middle = sorted.length / 2
  const median = sorted.length % 2 === 1 ? at(Math.floor(middle)) : (at(middle - 1) + at(middle)) / 2
  return { median: round(median), min: round(at(0)), max: round(at(sorted.length - 1)), n: sorted.length }
}

/** Prints a figure. Standard output carries nothing else. */
export function print (figure: Figure): void {
  process.stdout.write(`${JSON.stringify(figure)}\n`)
}

function round (value: number): number {
  return Number(value.toPrecision(4))
}
