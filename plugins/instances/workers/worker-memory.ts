// What no caller may do to an instance that works for another plugin.
import { InvalidState } from '../../../core/errors/common.ts'
import type { InstanceRecord } from '../model/record.ts'

/** Its memory may hold what must never be on a disk, secrets of a build among it. @throws invalid_state */
export function requireNoWorker (call: string, { name, spec }: Pick<InstanceRecord, 'name' | 'spec'>): void {
  if (spec.worker !== undefined) throw InvalidState(`${call}: instance ${name} works for the plugin ${spec.worker}, and its memory is not written to a disk`)
}
