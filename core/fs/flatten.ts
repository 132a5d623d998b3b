// Makes a tree shallow that is too deep to be named: whoever may write into a folder can go down step by step, beyond the longest path that the kernel takes.
import { randomUUID } from 'node:crypto'
import { readdir, rename } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'

/** Of the 4,096 bytes of Linux' PATH_MAX half are left to the names in a folder and to the path of the tree itself. */
const DEEP_BYTES = 2048
const SLASH = Buffer.from('/')

/**
 * Moves each folder that lies deeper than that to the top, under a name that means nothing. These may be too deep in turn. What goes away meanwhile is passed over: a removal that failed
 * still goes on elsewhere in the tree for a moment, as Node's `rm` works on many folders at once.
 * @returns how many it moved, and how many were gone
 */
export async function flatten (root: string): Promise<number> {
  const top = Buffer.from(root)
  let count = 0
  const visit = async (folder: Buffer): Promise<void> => {
    // As bytes, since not every name is text.
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      if (!entry.isDirectory()) continue
      const path = Buffer.concat([folder, SLASH, entry.name])
      try {
        if (path.length - top.length <= DEEP_BYTES) {
          await visit(path)
          continue
        }
        await rename(path, Buffer.concat([top, SLASH, Buffer.from(randomUUID())]))
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error
      }
      count++
    }
  }
  await visit(top)
  return count
}
