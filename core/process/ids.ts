// Which processes there are.
import { readdir } from 'node:fs/promises'

/** Ids of all processes that this one's /proc shows; each may have ended before it is looked at. */
export async function processIds (): Promise<number[]> {
  return (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
}
