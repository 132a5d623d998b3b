// Loops that go on to their end: what one VM, request or connection throws keeps nothing from the others.

/** Calls `act` with each of `items`, as they are now; `onFault` hears of what it throws. */
export function forEachApart<Item> (items: Iterable<Item>, act: (item: Item) => void, onFault: (error: unknown, item: Item) => void): void {
  for (const item of [...items]) {
    try {
      act(item)
    } catch (error) {
      onFault(error, item)
    }
  }
}
