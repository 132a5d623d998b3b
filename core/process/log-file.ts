// The log file of a process: limits its size, and reads its last lines.
import { copyFile, open, stat, truncate } from 'node:fs/promises'
import { hasCode } from '../errors/system-code.ts'
import { lastLines } from './tail.ts'

const REPORTED_LINES = 5
const REPORTED_BYTES = 4096

/** Empties a file of more than `maxBytes`, since the process keeps it open; one old copy is kept, `<path>.1`. */
export async function boundLog (path: string, maxBytes: number): Promise<void> {
  if (await sizeOf(path) <= maxBytes) return
  await copyFile(path, `${path}.1`)
  await truncate(path)
}

/** The last lines that were written after the file had the length `start`, in bytes. */
export async function wordsAfter (path: string, start: number): Promise<string> {
  const handle = await open(path, 'r')
  try {
    const from = Math.max(start, (await handle.stat()).size - REPORTED_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(REPORTED_BYTES), 0, REPORTED_BYTES, from)
    const lines = lastLines(buffer.toString('utf8', 0, bytesRead), REPORTED_LINES)
    return lines === '' ? 'it printed nothing' : lines
  } finally {
    await handle.close()
  }
}

async function sizeOf (path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}
