// Recognises that a disk is full, or about to be, whoever says so.
import { hasCode } from '../errors/system-code.ts'
import { DiskShort } from './disk-space.ts'

/** Whether the error, or a host command's last words in it, says so. */
export function isDiskFull (error: unknown): boolean {
  return error instanceof DiskShort || hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL') || (error instanceof Error && /no space left on device|disk quota exceeded/i.test(error.message))
}
