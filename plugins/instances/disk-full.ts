// Recognises that a disk is full, whoever says so.
import { hasCode } from '../../core/errors/system-code.ts'

/** Whether the error, or a host command's last words in it, says so. */
export function isDiskFull (error: unknown): boolean {
  return hasCode(error, 'ENOSPC', 'EDQUOT') || (error instanceof Error && /no space left on device|disk quota exceeded/i.test(error.message))
}
