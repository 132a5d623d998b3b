// Recognises errors that say that a disk is full, or about to be.
import { hasCode } from '../errors/system-code.ts'
import { DiskShort } from './disk-space.ts'

/** Whether the error says so, or the last words of a host command in it. */
export function isDiskFull (error: unknown): boolean {
  return error instanceof DiskShort || hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL') || (error instanceof Error && /no space left on device|disk quota exceeded/i.test(error.message))
}
