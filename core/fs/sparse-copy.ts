// Copies large files that are mostly holes, such as memory and disks, and keeps their holes.
import { copyFile, open, rm } from 'node:fs/promises'
import { constants } from 'node:fs'
import type { HostCommands } from '../contracts/services.ts'
import { hasCode } from '../errors/system-code.ts'

export type CopyWay = 'reflink' | 'sparse'

/**
 * Copies a file that nobody writes meanwhile; `to` must not exist. Where the file system can share blocks (XFS, btrfs) that takes the
 * same time for any size; elsewhere everything but the holes is copied. The copy is not synced. Removes the copy when it fails.
 * @param options.dropZeros also turns blocks of zeros into holes, for a copy that is made once and used often
 */
export async function copySparse (commands: HostCommands, from: string, to: string, options: { dropZeros?: boolean, signal?: AbortSignal } = {}): Promise<CopyWay> {
  const { dropZeros = false, signal } = options
  signal?.throwIfAborted()
  if (!dropZeros && await reflink(from, to)) return 'reflink'
  // Created here, so that what is removed below is ours, and with permissions that only the caller widens.
  await (await open(to, 'wx', 0o600)).close()
  try {
    // Node can neither look for holes nor copy ranges; cp can.
    await commands.run('cp', [...dropZeros ? ['--reflink=never', '--sparse=always'] : ['--reflink=auto', '--sparse=auto'], '--no-target-directory', '--', from, to], signal === undefined ? {} : { signal })
  } catch (error) {
    await rm(to, { force: true })
    throw error
  }
  return 'sparse'
}

/** Copies a file by sharing its blocks; false, without making a file, where the file system cannot. `to` must not exist. */
export async function reflink (from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOTTY', 'ENOSYS')) return false
    throw error
  }
}

/** Whether a copy shares blocks, and so takes neither time nor room; tried with the file itself. `to` must not exist, and does not afterwards. */
export async function sharesBlocks ({ from, to }: { readonly from: string, readonly to: string }): Promise<boolean> {
  if (!await reflink(from, to)) return false
  await rm(to)
  return true
}
