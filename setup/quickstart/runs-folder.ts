// The place of the private folders of quickstart runs.
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
