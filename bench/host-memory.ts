// Memory of the host that was used just before: a machine that is itself a VM gets its memory from its own host page by page at the first touch, and gives back what it has not used for a while.
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'

const PIECE_BYTES = 2 ** 20

/** Fills so much of the page cache and gives it back to the kernel, which hands it out next. What a program has filled and given back does not do: where free memory is in small pieces, files get others. */
export async function touchHostMemory (bytes: number, folder: string): Promise<void> {
  const path = join(folder, 'touched')
  const piece = Buffer.alloc(PIECE_BYTES, 1)
  const file = await open(path, 'w')
  try {
    for (let at = 0; at < bytes; at += PIECE_BYTES) await file.write(piece, 0, PIECE_BYTES, at)
  } finally {
    // Before any of it is on the disk.
    await rm(path)
    await file.close()
  }
}
