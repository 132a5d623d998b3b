// Finds where a log begins whose front the guard has given back to the disk (guard/cut.c): there is a hole, and then a line that says so.
import type { FileHandle } from 'node:fs/promises'

const PAGE_BYTES = 4096
const BLOCK_BYTES = 64 * 1024
/** st_blocks counts these, whatever the file system's own are */
const UNIT_BYTES = 512

/** The offset of the first byte that was not given back: 0 for a log without a hole in front. */
export async function dataStart (file: FileHandle): Promise<number> {
  const { size, blocks } = await file.stat()
  const hole = size - blocks * UNIT_BYTES
  // A file system that compresses also has fewer blocks than bytes; but then the front is not blank.
  if (hole <= 0 || !await isBlank(file, Math.min(PAGE_BYTES, size))) return 0
  // Blocks that the file system has set aside, or uses itself, make this offset too early.
  return await firstByte(file, Math.floor(hole / PAGE_BYTES) * PAGE_BYTES, size)
}

async function isBlank (file: FileHandle, bytes: number): Promise<boolean> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
  return bytesRead > 0 && blankBytes(buffer.subarray(0, bytesRead)) === bytesRead
}

async function firstByte (file: FileHandle, from: number, size: number): Promise<number> {
  const buffer = Buffer.alloc(BLOCK_BYTES)
  for (let at = from; at < size;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
    const blank = blankBytes(buffer.subarray(0, bytesRead))
    at += blank
    if (bytesRead === 0 || blank < bytesRead) return at
  }
  return size
}

function blankBytes (bytes: Buffer): number {
  let count = 0
  while (bytes[count] === 0) count++
  return count
}
