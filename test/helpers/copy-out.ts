// The SDK's copy out of a guest, to a place of one's own choosing: the SDK, as the peer's server does, writes what it gets under its own name into a folder.
import { rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cpFromInstance } from '@onkernel/hypeman/lib/cp'

/** Copies `srcPath` of the guest, which becomes `dstPath`. */
export async function copyOut (config: Parameters<typeof cpFromInstance>[0], instanceId: string, srcPath: string, dstPath: string): Promise<void> {
  const folder = `${dstPath}.folder`
  await cpFromInstance(config, { instanceId, srcPath, dstPath: folder })
  await rename(join(folder, basename(srcPath)), dstPath)
}
