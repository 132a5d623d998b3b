// What takes long to make and is the same each time is kept in the checkout's cache. Several processes may share it.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'

const FOLDER = join(packageRoot, '.cache/emulated-host')

/** The file or folder of this name, which `make` makes where there is none yet. Its name says all that it depends on. */
export async function kept (name: string, make: (path: string) => Promise<void>): Promise<string> {
  const place = join(FOLDER, name)
  if (existsSync(place)) return place
  await mkdir(FOLDER, { recursive: true })
  const partial = join(FOLDER, `.${randomUUID()}`)
  try {
    await make(partial)
    // Another process may have been quicker: a folder is not put in the place of one that holds something.
    await rename(partial, place).catch((error: unknown) => { if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error })
    return place
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}
