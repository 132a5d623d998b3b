// The state that events carry: it comes from the facts of the row alone, so that event and row agree whenever they are read.
import type { ResourceState } from '../../../core/db/changes.ts'
import type { InstanceRecord } from './record.ts'

/** False for a VM of the server itself (spares/hidden.ts), which no request can name. */
export function isShown ({ name }: InstanceRecord): boolean {
  return !name.startsWith('~')
}

export function storedState (record: InstanceRecord): ResourceState {
  const { id, name, image, spec: { tags }, exit } = record
  return { id, name, status: stateIn(record), tags, details: { image, ...exit === null ? {} : { exit_code: exit.exitCode, exit_message: exit.exitMessage } } }
}

/** The state without Paused, Shutdown and Unknown, which last only a moment, or which only a look at the VM tells. */
export function stateIn ({ status, handle, runningAt, standbyAt }: InstanceRecord): 'Created' | 'Initializing' | 'Running' | 'Standby' | 'Stopped' {
  if (status === 'creating') return 'Created'
  if (handle !== null) return runningAt === null ? 'Initializing' : 'Running'
  return standbyAt === null ? 'Stopped' : 'Standby'
}
