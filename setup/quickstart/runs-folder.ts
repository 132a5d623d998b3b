// The place of the private folders of quickstart runs.
import { existsSync, statSync, type Stats } from 'node:fs'
import { chmod, lstat, mkdir, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { packageRoot } from '../../core/package-root.ts'

/**
 * A folder in the checkout; or, when other users cannot get there (as in /root), one among the temporary files:
 * a server that runs as root gives each machine a user of its own, which must be able to reach the machine's disks.
 */
export function runsFolder (): string {
  const isRoot = process.getuid?.() === 0
  return !isRoot || isOpenToAll(packageRoot) ? join(packageRoot, '.quickstart') : '/var/tmp/berth-quickstart'
}

/** Whether every user can pass through `folder` and all folders above it. */
function isOpenToAll (folder: string): boolean {
  const parent = dirname(folder)
  return existsSync(folder) && (statSync(folder).mode & 0o001) !== 0 && (parent === folder || isOpenToAll(parent))
}

/** Makes the folder of the runs, or finds that of an earlier run. @throws a sentence when another user could change what is in it */
export async function makeRunsFolder (folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    await requireOwn(folder)
    return
  }
  // Whatever the umask is: users of machines pass through it.
  await chmod(folder, 0o711)
}

/** Names of the runs in the folder; none when it does not exist. @throws a sentence when another user could have put them there */
export async function runsIn (folder: string): Promise<string[]> {
  if (!await isThere(folder)) return []
  await requireOwn(folder)
  return await readdir(folder)
}

/** Anybody can make a folder of a known name among the temporary files, before or after this user has run anything. What a run keeps there is executed, and its processes are ended. */
async function requireOwn (folder: string): Promise<void> {
  const problem = objection(await lstat(folder))
  if (problem !== undefined) throw new Error(`${folder} ${problem}: look at it, take that right from them (chmod 711) or remove it once nothing runs in it, and try again`)
}

function objection (found: Stats): string | undefined {
  if (!found.isDirectory()) return 'is not a folder'
  if (found.uid !== process.getuid?.()) return `belongs to another user (${found.uid}), who could change what is in it`
  return (found.mode & 0o022) === 0 ? undefined : 'can be written by other users'
}
