// Watches a file that a VMM appends a guest's output to.
import { once } from 'node:events'
import { watch } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'

const chunkBytes = 65_536
/** counts that a sleep or a wake-up can swallow */
const mostSkipped = 100

/** Resolves to the first whole line from the byte `offset` on that `wanted` accepts. A line that `offset` cuts through counts as well. */
export async function lineInFile (path: string, wanted: (line: string) => boolean, offset = 0): Promise<string> {
  const changes = watch(path)
  const handle = await open(path, 'r')
  const buffer = Buffer.alloc(chunkBytes)
  let [position, rest] = [offset, '']
  try {
    for (;;) {
      // The watch begins before reading, so that no change is missed in between.
      const changed = once(changes, 'change')
      const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
      position += bytesRead
      const lines = (rest + buffer.toString('latin1', 0, bytesRead)).split('\n')
      rest = lines.pop() ?? ''
      const found = lines.find(wanted)
      if (found !== undefined) return found
      if (bytesRead === 0) await changed
    }
  } finally {
    await handle.close()
    changes.close()
  }
}

/** The offset at which the next line will begin, or the current one will go on. */
export async function endOf (path: string): Promise<number> {
  return (await stat(path)).size
}

/** For a program that counts aloud and is paused now: resolves when it counts on from where it was. Fails when it has begun anew. */
export async function nextCount (path: string): Promise<() => Promise<void>> {
  const offset = await endOf(path)
  const last = Number([...(await readFile(path, 'latin1')).matchAll(/^count (\d+)$/gm)].at(-1)?.[1] ?? NaN)
  return async () => {
    const line = await lineInFile(path, each => /^count \d+$/.test(each), offset)
    const next = Number(line.slice('count '.length))
    if (!(next > last && next < last + mostSkipped)) throw new Error(`the program counted ${next} after ${last}: it has not gone on from where it was`)
  }
}
