// Finds where a file of the audit log ends, so that numbers go on after a restart.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { hasCode } from '../log/error-code.ts'

// More than the longest line: texts from guests are cut before they are written.
const TAIL_BYTES = 64 * 1024

/** The number of the last whole entry of a file; 0 when there is none. A line that was cut off by a crash is passed over. */
export function lastSeqOf (file: string): number {
  try {
    const lines = readTail(file).split('\n').reverse()
    for (const line of lines) {
      const seq = /^\{"seq":(\d+),.*\}$/.exec(line)?.[1]
      if (seq !== undefined) return Number(seq)
    }
    return 0
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}

function readTail (file: string): string {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES))
    readSync(descriptor, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString()
  } finally {
    closeSync(descriptor)
  }
}
