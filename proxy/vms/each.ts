// Loops that always reach their end: an exception for one VM, request or connection does not affect the others.

/** Calls `act` with each of `items`, as they are now; `onFault` gets each exception. */
export function forEachApart<Item> (items: Iterable<Item>, act: (item: Item) => void, onFault: (error: unknown, item: Item) => void): void {
  for (const item of [...items]) {
    try {
      act(item)
    } catch (error) {
      onFault(error, item)
    }
  }
}
