// Brings the journal of a volume in order that a writer has left behind, before anybody reads the volume: readers do not write, so they cannot do it themselves.
import { HostCommandFailed } from '../../core/process/run.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import { needsRecovery } from '../../core/library/ext4.ts'
import type { VolumeUser } from '../instances/volumes/contract.ts'

const TIMEOUT_MS = 300_000
// e2fsck: errors were corrected
const CORRECTED = 1

/**
 * The content is whatever a guest has made of it, so e2fsck reads it as the user who may write it and nobody else, without privileges.
 * @param path which that user can reach and write
 * @returns false when it could not be brought in order
 */
export async function playJournal (commands: HostCommands, path: string, user: VolumeUser | undefined): Promise<boolean> {
  if (!await needsRecovery(path)) return true
  const become = user === undefined ? [] : [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups']
  try {
    await commands.run('setpriv', [...become, '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all', '/sbin/e2fsck', '-E', 'journal_only', '-y', path], { timeoutMs: TIMEOUT_MS })
  } catch (error) {
    if (!(error instanceof HostCommandFailed)) throw error
    if (error.failure.exitCode !== CORRECTED) return false
  }
  return !await needsRecovery(path)
}
