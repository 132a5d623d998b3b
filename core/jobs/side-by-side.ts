// Runs many pieces of work, a few at a time: thousands that begin together keep the event loop busy until all of them have begun.
import { setImmediate as turn } from 'node:timers/promises'
import { MOST_MS } from './in-turns.ts'

/** Does `work` for each item, at most `atOnce` in parallel, and yields to the event loop in between. The result is that of `Promise.allSettled`, in the order of the items. */
export async function sideBySide<Item, Result> (items: readonly Item[], atOnce: number, work: (item: Item, index: number) => Promise<Result>): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = []
  const left = items.entries()
  let lastTurn = performance.now()
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) {
      try {
        results[index] = { status: 'fulfilled', value: await work(item, index) }
      } catch (reason) {
        results[index] = { status: 'rejected', reason }
      }
      // Work that never waits does not yield by itself.
      if (performance.now() - lastTurn < MOST_MS) continue
      await turn()
      lastTurn = performance.now()
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return results
}
