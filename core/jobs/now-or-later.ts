// What the caller is told at once, and what is seen to all the same when it fails.

/**
 * Settles as `now` does. When that fails, nobody can tell how far it came, and whoever asked may never come back: `later` begins what sees to the rest, as a rule with `untilDone`.
 * @example await nowOrLater(async () => { await remove(id) }, () => { void untilDone(async () => { await remove(id) }, closing) })
 */
export async function nowOrLater<T> (now: () => Promise<T>, later: () => void): Promise<T> {
  try {
    return await now()
  } catch (error) {
    later()
    throw error
  }
}
