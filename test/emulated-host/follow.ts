// Passes on what is appended to a file while something goes on.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 500

/** Resolves as `work` does, once all that the file then holds was passed on. The file may come later, or never; it is small, and whole lines are nobody's promise. */
export async function follow<T> (path: string, pass: (piece: Buffer) => void, work: Promise<T>): Promise<T> {
  let position = 0
  const look = async (): Promise<void> => {
    if (!existsSync(path)) return
    const piece = (await readFile(path)).subarray(position)
    position += piece.length
    if (piece.length > 0) pass(piece)
  }
  const over = new AbortController()
  const ended = work.finally(() => { over.abort() })
  while (!over.signal.aborted) {
    await Promise.race([ended, delay(PAUSE_MS, undefined, { ref: false })])
    await look()
  }
  return await ended
}
