// Groups of files that import each other in a circle: the strongly connected components of the imports, by Tarjan's algorithm.
import type { Import } from './imports.ts'

interface Visit { readonly index: number, low: number, onStack: boolean }

/** Each circle as its files, sorted; only those of two files or more. */
export function circlesOf (imports: readonly Import[]): string[][] {
  const targets = new Map<string, string[]>()
  for (const { from, to } of imports) targets.set(from, [...targets.get(from) ?? [], to])
  const visits = new Map<string, Visit>()
  const stack: string[] = []
  const circles: string[][] = []
  const walk = (file: string): Visit => {
    const visit: Visit = { index: visits.size, low: visits.size, onStack: true }
    visits.set(file, visit)
    stack.push(file)
    for (const next of targets.get(file) ?? []) {
      const seen = visits.get(next)
      if (seen === undefined) visit.low = Math.min(visit.low, walk(next).low)
      else if (seen.onStack) visit.low = Math.min(visit.low, seen.index)
    }
    if (visit.low === visit.index) {
      const circle = stack.splice(stack.indexOf(file))
      for (const member of circle) {
        const done = visits.get(member)
        if (done !== undefined) done.onStack = false
      }
      if (circle.length > 1) circles.push(circle.sort())
    }
    return visit
  }
  for (const file of targets.keys()) if (!visits.has(file)) walk(file)
  return circles.sort((a, b) => (a[0] ?? '') < (b[0] ?? '') ? -1 : 1)
}
