// Writes entries as files of this host. They come from a guest, so nothing is written outside the target, whatever the entries contain.
// A file or link is made under a temporary name beside its own and renamed when it is complete: an interrupted copy leaves no half file, and keeps what was there before.
import { randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, open, rename, rm, symlink, utimes } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Failure } from '../failure.ts'
import type { Entry } from './entry.ts'
import { goesUp, shortest } from './shortest.ts'

/**
 * Writes them at `target`; the folder above it must exist.
 * @param skipped told of each link that is left out, as it leads out of what is copied
 */
export async function writeLocally (target: string, entries: AsyncIterable<Entry>, skipped: (entry: Entry) => void): Promise<void> {
  let isWhole = false
  for await (const entry of entries) {
    // Below a link at the target itself everything would go where it leads to.
    if (isWhole) throw new Failure(`${target} is no folder, and something in it is copied`)
    const path = pathInside(entry.path)
    if (entry.kind === 'link' && leadsOut(path, entry.target ?? '')) skipped({ ...entry, path })
    else {
      await writeEntry(target, { ...entry, path }).catch((error: unknown) => {
        throw error instanceof Error && 'syscall' in error ? new Failure(`${join(target, path)} cannot be written: ${error.message}`, { cause: error }) : error
      })
    }
    isWhole = path === '' && entry.kind !== 'folder'
  }
}

async function writeEntry (target: string, { path, kind, mode, mtime, target: link = '', content }: Entry): Promise<void> {
  const file = path === '' ? target : join(target, path)
  if (path !== '') await requireNoLinkAbove(target, path)
  // A guest may set the bits that give rights to other users inside the guest, but not on this host.
  const bits = mode & 0o755
  const before = await lstat(file).catch(() => undefined)
  if (kind === 'folder') {
    // A link to a folder would pass for one, and what is copied, and its mode, would go where it leads to.
    if (before !== undefined && !before.isDirectory()) throw new Failure(`${file} is no folder, and one of that name is copied`)
    await mkdir(file, { recursive: true })
    await chmod(file, bits | 0o700)
    return
  }
  if (before?.isDirectory() === true) throw new Failure(`${file} is a folder, and a ${kind} of that name is copied`)
  // Rename would also replace a device: a copy to /dev/null by root must not do that.
  if (before !== undefined && !before.isFile() && !before.isSymbolicLink()) throw new Failure(`${file} is a device, pipe or socket, and only files and links are replaced`, { hint: '- as the target writes an archive to standard output' })
  if (kind === 'hard link' || kind === 'special file') throw new Failure(`${file}: a ${kind} cannot be copied`)
  if (kind === 'file' && content === undefined) return
  const beside = join(dirname(file), `.berth-cp-${randomBytes(8).toString('hex')}`)
  try {
    if (kind === 'link' || content === undefined) await symlink(link, beside)
    else {
      // Open before anything can fail: a stream that is destroyed while it opens its file would make it after it was removed.
      const made = await open(beside, 'wx', bits | 0o600)
      await pipeline(content, made.createWriteStream())
      if (mtime > 0) await utimes(beside, mtime, mtime)
    }
    await rename(beside, file)
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
}

/** As it is written shortest: `.` is the target itself, and with a slash at its end a path would go through a link there. */
function pathInside (path: string): string {
  if (path.startsWith('/') || goesUp(path) || path.includes('\0')) throw new Failure(`the instance sent a path that leads out of what is copied: ${path}`)
  return shortest(path)
}

/** A link must not redirect entries: neither an earlier one, nor one at the target itself, whose own entry the instance may have left out. */
async function requireNoLinkAbove (target: string, path: string): Promise<void> {
  for (let below = path; below !== '.';) {
    below = dirname(below)
    const above = join(target, below)
    const found = await lstat(above).catch(() => undefined)
    if (found !== undefined && !found.isDirectory()) throw new Failure(`${above} is no folder, and something in it is copied`)
  }
}

/** A link that is copied by itself can only lead to what was beside the target before: a later copy to the same place, or below it, would go there. */
function leadsOut (path: string, link: string): boolean {
  if (path === '' || link === '' || link.startsWith('/') || goesUpAgain(link)) return true
  const end = posix.normalize(posix.join(posix.dirname(path), link))
  return end === '..' || end.startsWith('../')
}

/** Whether `..` comes after a name. Such a name may be a link, too, and then `..` is not the folder that the text says. */
function goesUpAgain (link: string): boolean {
  const parts = link.split('/')
  const name = parts.findIndex((part) => !['', '.', '..'].includes(part))
  return name >= 0 && parts.includes('..', name)
}
