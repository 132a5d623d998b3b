// A small file system of a test's own, to be filled.
import { chmod, mkdtemp, rmdir, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'

/** Its folder, which others may pass through. Needs `withoutMounts` for `skip`; what works on it must have ended before the test has. */
export async function smallDisk (t: Test, mib: number): Promise<string> {
  const disk = await mkdtemp(join(tmpdir(), 'berth-small-disk-'))
  await createHostCommands().run('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=711`, 'tmpfs', disk])
  t.teardown(async () => {
    await createHostCommands().run('umount', [disk])
    await rmdir(disk)
  })
  await chmod(disk, 0o711)
  return disk
}

/** Writes a file that leaves only so much of the disk free. */
export async function fillDisk (file: string, leftBytes: number): Promise<void> {
  await writeFile(file, '')
  const { bavail, bsize } = await statfs(file)
  await writeFile(file, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes), 'x'))
}
