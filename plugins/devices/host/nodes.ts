// The device files through which a VMM reaches a group. They belong to the VM's user for as long as there is a VM, and to root otherwise.
import { chmod, chown, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { DeviceUser } from '../claim.ts'

/** the file that every VMM with a device opens; through this file alone no device can be reached */
const CONTAINER = 'vfio'

/** @param folder `/dev/vfio` */
export async function lendNode (folder: string, group: number, { uid, gid }: DeviceUser): Promise<void> {
  const container = join(folder, CONTAINER)
  // The mode that the kernel gives it; some systems reduce it.
  if (((await stat(container)).mode & 0o006) !== 0o006) await chmod(container, 0o666)
  const node = join(folder, String(group))
  await chmod(node, 0o600)
  await chown(node, uid, gid)
}

/** Does nothing when the group does not exist any more. */
export async function takeNodeBack (folder: string, group: number): Promise<void> {
  try {
    await chown(join(folder, String(group)), 0, 0)
  } catch (error) {
    // A server that is not root has lent nothing.
    if (!hasCode(error, 'ENOENT', 'EPERM')) throw error
  }
}
