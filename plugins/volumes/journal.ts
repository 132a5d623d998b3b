// Plays back the journal that a writer has left in a volume, before anybody reads the volume: readers do not write, so they cannot do it themselves.
import { HostCommandFailed } from '../../core/process/run.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import { needsRecovery } from '../../core/library/ext4.ts'
import type { VolumeUser } from '../instances/volumes/contract.ts'

const TIMEOUT_MS = 300_000
// e2fsck: errors were corrected
const CORRECTED = 1

/**
 * A guest has written the content, so e2fsck reads it without privileges, as the user who may write it.
 * @param path which that user can reach and write
 * @returns false when the journal could not be played back
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
