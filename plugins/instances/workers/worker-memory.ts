// Refuses to capture instances that work for a plugin.
import { InvalidState } from '../../../core/errors/common.ts'
import type { InstanceRecord } from '../model/record.ts'

/** The memory may hold what must never be on a disk, such as secrets of a build. @throws invalid_state */
export function requireNoWorker (call: string, { name, spec }: Pick<InstanceRecord, 'name' | 'spec'>): void {
  if (spec.worker !== undefined) throw InvalidState(`${call}: instance ${name} works for the plugin ${spec.worker}, and its memory is not written to a disk`)
}
