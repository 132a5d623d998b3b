// Root makes files for a server without root's rights, which could not open its own.
import { lchown, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Gives a file or folder that root has made to whom its folder belongs. Everybody else's are his own already. */
export async function giveToOwner (path: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(dirname(path))
  await lchown(path, uid, gid)
}
