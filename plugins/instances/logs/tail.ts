// Finds where the last N lines of a file begin, reading backwards in blocks.
import type { FileHandle } from 'node:fs/promises'
import { dataStart } from './gap.ts'

const BLOCK_BYTES = 64 * 1024
const NEWLINE = 0x0a

export interface TailStart {
  /** the offset at which the wanted lines begin */
  readonly offset: number
  /** how many lines stand from there to the end; fewer than wanted when the file has no more */
  readonly lines: number
}

/** Where the last `wanted` lines before `end` begin. A last line without a newline counts as one. */
export async function tailStart (file: FileHandle, end: number, wanted: number): Promise<TailStart> {
  if (wanted <= 0 || end === 0) return { offset: end, lines: 0 }
  const begin = Math.min(await dataStart(file), end)
  const block = Buffer.alloc(Math.min(BLOCK_BYTES, end))
  let lines = 0
  let from = end
  while (from > begin) {
    const size = Math.min(block.length, from - begin)
    from -= size
    const { bytesRead } = await file.read(block, 0, size, from)
    for (let index = bytesRead - 1; index >= 0; index--) {
      // The newline at the very end closes the last line; every other one ends the line before.
      if (block[index] !== NEWLINE || from + index === end - 1) continue
      lines++
      if (lines === wanted) return { offset: from + index + 1, lines }
    }
  }
  return { offset: begin, lines: lines + 1 }
}
