// Makes the file that a VMM's output moves to, as the VMM's user can write it.
import { open, stat } from 'node:fs/promises'
import { hasCode } from '../../errors/system-code.ts'

/** An existing file stays as it is. A new one belongs to the user that the VMM runs as, whose folder it need not be. */
export async function prepareLogFile (path: string, vmmPid: number): Promise<void> {
  const owner = await stat(`/proc/${vmmPid}`)
  try {
    const handle = await open(path, 'ax', 0o640)
    try {
      if (process.getuid?.() === 0) await handle.chown(owner.uid, owner.gid)
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}
