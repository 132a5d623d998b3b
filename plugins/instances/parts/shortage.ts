// Whether an error means a shortage of something that the server's own VMs may hold.
import { BerthError } from '../../../core/errors/define.ts'
import { HostSlotsExhausted } from '../errors.ts'

export function isShortage (error: unknown): boolean {
  return error instanceof BerthError && error.code === HostSlotsExhausted.code
}
