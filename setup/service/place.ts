// Puts single files in their places atomically. What undoes that is take-back.ts.
import { chmod, copyFile, lstat, mkdir, readFile, readlink, rename, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { isThere } from '../../core/fs/is-there.ts'
import type { PlacedFile } from './files.ts'

/** Puts a file in its place, unless an equal one is there. @returns whether something changed */
export async function placeFile (root: string, file: PlacedFile): Promise<boolean> {
  const target = join(root, file.path)
  if (await isInPlace(target, file)) return false
  const fresh = freshOf(target)
  await rm(fresh, { force: true })
  if ('link' in file.from) await symlink(file.from.link, fresh)
  else {
    await copyFile(file.from.file, fresh)
    await chmod(fresh, file.mode)
  }
  await setAside(target)
  await rename(fresh, target)
  return true
}

/** Moves a file away until the installation has succeeded. @returns whether there was one */
export async function setAside (target: string): Promise<boolean> {
  try {
    await rename(target, asideOf(target))
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/** Where `setAside` moves files; they are removed once the new ones have worked. */
export function asideOf (target: string): string {
  return `${target}.berth-old`
}

/** Where what comes to `target` is made. */
export function freshOf (target: string): string {
  return `${target}.berth-new`
}

/** @returns the folders without the root that these paths lack, outermost first */
export async function missingFolders (root: string, paths: readonly string[]): Promise<string[]> {
  const missing = new Set<string>()
  for (const path of paths) {
    const own: string[] = []
    for (let folder = dirname(path); folder !== '/' && !await isThere(join(root, folder)); folder = dirname(folder)) own.unshift(folder)
    for (const folder of own) missing.add(folder)
  }
  return [...missing]
}

export async function makeFolders (root: string, folders: readonly string[]): Promise<void> {
  for (const folder of folders) await mkdir(join(root, folder), { recursive: true, mode: 0o755 })
}

export async function removeFolders (root: string, folders: readonly string[]): Promise<void> {
  for (const folder of [...folders].reverse()) await removeEmpty(join(root, folder))
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
