// What a process that writes to a file had to say, for the error that tells of its end.
import { open } from 'node:fs/promises'
import { lastLines } from './tail.ts'

const REPORTED_LINES = 5
const REPORTED_BYTES = 4096

/** The last lines that were written to a file after `start`, a length of it in bytes. */
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
