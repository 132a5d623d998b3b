// Whether something is short of which the server's own VMs may hold some.
import { BerthError } from '../../../core/errors/define.ts'
import { HostSlotsExhausted } from '../errors.ts'

export function isShortage (error: unknown): boolean {
  return error instanceof BerthError && error.code === HostSlotsExhausted.code
}
