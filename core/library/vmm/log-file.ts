// Makes the new file for a VMM's output, so that the VMM's user can write it.
import { open, stat } from 'node:fs/promises'
import { hasCode } from '../../errors/system-code.ts'

/** An existing file stays as it is. A new file gets the user that the VMM runs as, though its folder may belong to another. */
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
