// Recognises that a disk is full, whoever says so.
import { hasCode } from '../errors/system-code.ts'

/** Whether the error, or a host command's last words in it, says so. */
export function isDiskFull (error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL') || (error instanceof Error && /no space left on device|disk quota exceeded/i.test(error.message))
}
