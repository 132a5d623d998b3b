// Copies and compares folders for an installation: whatever modes the checkout has, all users can read the installed files, and only root can change them.
import { chmod, copyFile, lstat, mkdir, readdir, readFile, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** @param path relative to the folder that is copied */
export type Filter = (path: string) => boolean

/** Copies a file, a link or a folder. Missing parent folders are made. */
export async function copyInto (source: string, target: string, keep: Filter = () => true): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 })
  await copyEntry(source, target, '', keep)
}

async function copyEntry (source: string, target: string, path: string, keep: Filter): Promise<void> {
  const found = await lstat(source)
  if (found.isSymbolicLink()) return await symlink(await readlink(source), target)
  if (!found.isDirectory()) {
    await copyFile(source, target)
    return await chmod(target, (found.mode & 0o100) === 0 ? 0o644 : 0o755)
  }
  await mkdir(target, { recursive: true })
  await chmod(target, 0o755)
  for (const name of await readdir(source)) {
    const inner = path === '' ? name : `${path}/${name}`
    if (keep(inner)) await copyEntry(join(source, name), join(target, name), inner, keep)
  }
}

/** Whether two folders have the same content, modes included. */
export async function isSameTree (one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([lstat(one), lstat(other)])
  if (a.mode !== b.mode || a.uid !== b.uid) return false
  if (a.isSymbolicLink()) return await readlink(one) === await readlink(other)
  if (!a.isDirectory()) return a.size === b.size && (await readFile(one)).equals(await readFile(other))
  const [names, others] = await Promise.all([readdir(one), readdir(other)])
  if (names.sort().join('/') !== others.sort().join('/')) return false
  for (const name of names) if (!await isSameTree(join(one, name), join(other, name))) return false
  return true
}
