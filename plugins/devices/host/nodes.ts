// The device files through which a VMM reaches a group: they belong to the VM's user for as long as it has a VM, and to root else.
import { chmod, chown, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { DeviceUser } from '../claim.ts'

/** the file that every VMM with a device opens; what can be done through it alone reaches no device */
const CONTAINER = 'vfio'

/** @param folder `/dev/vfio` */
export async function lendNode (folder: string, group: number, { uid, gid }: DeviceUser): Promise<void> {
  const container = join(folder, CONTAINER)
  // As the kernel makes it; some systems narrow it.
  if (((await stat(container)).mode & 0o006) !== 0o006) await chmod(container, 0o666)
  const node = join(folder, String(group))
  await chmod(node, 0o600)
  await chown(node, uid, gid)
}

/** Nothing to do when the group is no longer there. */
export async function takeNodeBack (folder: string, group: number): Promise<void> {
  try {
    await chown(join(folder, String(group)), 0, 0)
  } catch (error) {
    // A server that is not root lends nothing.
    if (!hasCode(error, 'ENOENT', 'EPERM')) throw error
  }
}
