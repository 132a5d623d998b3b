// Divides the time of an operation: the steps that the server writes into an instance's log of operations, and the rest.
import { logLines, type Berth } from './berth.ts'
import { figureOf, print, series, type Keep, type Series } from './harness.ts'

export interface Steps {
  /**
   * Notes the steps of an operation that an instance has gone through once.
   * @param totalMs the time that a client has measured
   */
  note (berth: Berth, id: string, operation: string, totalMs: number, keep: Keep): Promise<void>
  print (title: string): void
}

/** @param rest name of the time that is in no step of the server */
export function createSteps (rest: string): Steps {
  const steps = new Map<string, Series>()
  const seriesOf = (name: string): Series => {
    const known = steps.get(name) ?? series(`  ${name}`)
    steps.set(name, known)
    return known
  }
  return {
    async note (berth, id, operation, totalMs, keep) {
      const found = (await logLines(berth, id, 'berth')).filter(line => line.includes(` ${operation}: `)).flatMap(stepsIn)
      if (found.length === 0) throw new Error(`the log of operations does not tell of a ${operation}`)
      for (const [name, ms] of found) keep(seriesOf(name), ms)
      const total = found.find(([name]) => name === 'done')?.[1] ?? found.reduce((sum, [, ms]) => sum + ms, 0)
      keep(seriesOf(rest), totalMs - total)
    },
    print (title) {
      for (const [name, { values }] of steps) print(figureOf(`${title}, step: ${name}`, 'ms', values))
    }
  }
}

/** Milliseconds of one step of the operation that an instance has gone through last. */
export async function lastStep (berth: Berth, id: string, operation: string, step: string): Promise<number> {
  const lines = (await logLines(berth, id, 'berth')).filter(line => line.includes(` ${operation}: `))
  const found = lines.flatMap(stepsIn).findLast(([name]) => name === step)
  if (found === undefined) throw new Error(`the log of operations does not tell of the step ${step} of a ${operation}`)
  return found[1]
}

/** `… create: from a spare VM: row and disks 3.1 ms, resumed 2 ms; done in 6 ms` as names and milliseconds. */
function stepsIn (line: string): Array<readonly [string, number]> {
  return [...line.matchAll(/(?:^|[:;,] )([^:;,]+?)(?: after| for| in)?(?: another)? (\d+(?:\.\d+)?) ms\b/g)]
    .map(([, name = '', ms]) => [name, Number(ms)] as const)
}
