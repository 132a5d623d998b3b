// What events tell of an instance: the facts of its row alone, so that the event and the row say the same whenever they are read.
import type { ResourceState } from '../../../core/db/changes.ts'
import type { InstanceRecord } from './record.ts'

/** Not a VM of the server itself (templates/hidden.ts), which no request can name. */
export function isShown ({ name }: InstanceRecord): boolean {
  return !name.startsWith('~')
}

export function storedState (record: InstanceRecord): ResourceState {
  const { id, name, image, spec: { tags }, exit } = record
  return { id, name, status: stateIn(record), tags, details: { image, ...exit === null ? {} : { exit_code: exit.exitCode, exit_message: exit.exitMessage } } }
}

/** Without what lasts but a moment and only a look at the VM tells: Paused, Shutdown, Unknown. */
export function stateIn ({ status, handle, runningAt, standbyAt }: InstanceRecord): 'Created' | 'Initializing' | 'Running' | 'Standby' | 'Stopped' {
  if (status === 'creating') return 'Created'
  if (handle !== null) return runningAt === null ? 'Initializing' : 'Running'
  return standbyAt === null ? 'Stopped' : 'Standby'
}
