// Puts single files in their places atomically, and undoes that.
import { chmod, copyFile, lstat, mkdir, readFile, readlink, rename, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { isThere } from '../../core/fs/is-there.ts'
import type { Undo } from '../../core/undo.ts'
import type { PlacedFile } from './files.ts'

/** Puts a file in its place, unless an equal one is there. @returns whether something changed, or was changed by an installation that did not get to its end */
export async function placeFile (root: string, file: PlacedFile, undo: Undo): Promise<boolean> {
  const target = join(root, file.path)
  if (await isInPlace(target, file)) return await isThere(asideOf(target))
  const fresh = `${target}.berth-new`
  await rm(fresh, { force: true })
  undo.add(async () => { await rm(fresh, { force: true }) })
  if ('link' in file.from) await symlink(file.from.link, fresh)
  else {
    await copyFile(file.from.file, fresh)
    await chmod(fresh, file.mode)
  }
  await setAside(target, undo)
  await rename(fresh, target)
  undo.add(async () => { await rm(target) })
  return true
}

/** Moves a file away until the installation has succeeded. @returns whether there was one */
export async function setAside (target: string, undo: Undo): Promise<boolean> {
  const aside = asideOf(target)
  await rm(aside, { recursive: true, force: true })
  try {
    await rename(target, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
  undo.add(async () => { await rename(aside, target) })
  return true
}

/** Where `setAside` moves files; they are removed once the new ones have worked. */
export function asideOf (target: string): string {
  return `${target}.berth-old`
}

/** Makes the parent folders. @returns those that were missing, outermost first, without the root */
export async function makeFolders (root: string, path: string, undo: Undo): Promise<string[]> {
  const missing: string[] = []
  for (let folder = path; folder !== '/' && !await isThere(join(root, folder)); folder = dirname(folder)) missing.unshift(folder)
  for (const folder of missing) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 })
    undo.add(async () => { await removeEmpty(join(root, folder)) })
  }
  return missing
}

export async function removeEmpty (folder: string): Promise<void> {
  try {
    await rmdir(folder)
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error
  }
}

async function isInPlace (target: string, { mode, from }: PlacedFile): Promise<boolean> {
  if (!await isThere(target)) return false
  const found = await lstat(target)
  if ('link' in from) return found.isSymbolicLink() && await readlink(target) === from.link
  return found.isFile() && (found.mode & 0o7777) === mode && (await readFile(target)).equals(await readFile(from.file))
}
