// Long loops in pieces, between which the event loop gets a turn for others.
import { setImmediate as turn } from 'node:timers/promises'

/** for how long others may be kept waiting */
export const MOST_MS = 10

/** What `map` makes of each item, as `Array.map`. */
export async function mapInTurns<Item, Result> (items: readonly Item[], map: (item: Item, index: number) => Result): Promise<Result[]> {
  const results: Result[] = []
  let lastTurn = performance.now()
  for (const [index, item] of items.entries()) {
    results.push(map(item, index))
    if (performance.now() - lastTurn < MOST_MS) continue
    await turn()
    lastTurn = performance.now()
  }
  return results
}
