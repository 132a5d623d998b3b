// The checksum of a file that may be mostly holes: blocks of zeros count only by their place, so a copy with other holes has the same checksum.
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

const BLOCK_BYTES = 2 ** 20
const ZEROS = Buffer.alloc(BLOCK_BYTES)

export async function checksumOf (path: string): Promise<string> {
  const handle = await open(path, 'r')
  try {
    const hash = createHash('sha256')
    const block = Buffer.alloc(BLOCK_BYTES)
    let at = 0
    for (;;) {
      const length = await fill(handle, block, at)
      const bytes = block.subarray(0, length)
      if (!bytes.equals(ZEROS.subarray(0, length))) hash.update(`${at}:`).update(bytes)
      at += length
      if (length < BLOCK_BYTES) break
    }
    return hash.update(`${at}`).digest('hex')
  } finally {
    await handle.close()
  }
}

async function fill (handle: Awaited<ReturnType<typeof open>>, block: Buffer, at: number): Promise<number> {
  let length = 0
  while (length < block.length) {
    const { bytesRead } = await handle.read(block, length, block.length - length, at + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return length
}
