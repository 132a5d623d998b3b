// Copies parts of a large file into a copy of it that was made before.
import { open } from 'node:fs/promises'
import type { VmDiskRange } from '../../../core/library/hypervisor.ts'

const PIECE_BYTES = 2 ** 20

/** Both files exist and have the same size. */
export async function copyRanges (from: string, to: string, ranges: readonly VmDiskRange[]): Promise<void> {
  if (ranges.length === 0) return
  const source = await open(from, 'r')
  try {
    const target = await open(to, 'r+')
    try {
      const piece = Buffer.allocUnsafe(PIECE_BYTES)
      for (const { offset, bytes } of ranges) {
        for (let at = offset; at < offset + bytes;) {
          const { bytesRead } = await source.read(piece, 0, Math.min(PIECE_BYTES, offset + bytes - at), at)
          // The last range may reach beyond the end of the file.
          if (bytesRead === 0) break
          for (let done = 0; done < bytesRead;) done += (await target.write(piece, done, bytesRead - done, at + done)).bytesWritten
          at += bytesRead
        }
      }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}
