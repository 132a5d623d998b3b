// The memory file of a double's guest: as large as the guest's memory, and nearly all of it a hole.
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync, writeSync } from 'node:fs'

/** where it holds something */
const CONTENT_AT = 4096

export function writeMemory (path: string, bytes: number, content: string): void {
  writeFileSync(path, '', { mode: 0o600 })
  truncateSync(path, bytes)
  const fd = openSync(path, 'r+')
  writeSync(fd, content.padEnd(CONTENT_AT, '\n'), CONTENT_AT)
  closeSync(fd)
}

export function readMemory (path: string): string {
  return readFileSync(path).subarray(CONTENT_AT, 2 * CONTENT_AT).toString().replaceAll('\0', '').trim()
}
