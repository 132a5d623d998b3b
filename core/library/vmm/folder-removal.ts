// Removes the folder of a VMM that has ended. A guest may have controlled the VMM and filled it, and nobody else waits for as long as that takes to remove.
import { lstatSync, opendirSync, rmSync } from 'node:fs'
import { opendir, rmdir, unlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../../errors/system-code.ts'
import { removeTree } from '../../fs/durable.ts'
import { OneAtATime } from '../../jobs/one-at-a-time.ts'

/** More than any VMM leaves by itself, and removed in some milliseconds. */
const MOST_AT_ONCE = { entries: 256, bytes: 2 ** 26 }

/** that are remembered while files are removed one after the other */
const MOST_FOLDERS = 10_000
const ENTRIES_AT_A_TIME = 64
/** Not every name is text, and this one loses no byte. */
const BYTES = { encoding: 'latin1' } as const

/** Of all VMs: it takes one thread of the few that read and write files for the whole server. */
const removals = new OneAtATime()
const waiting = new Set<string>()

/** Removes a folder at once, and returns whether it did: one that is too large for that stays as it is. Throws when it cannot be removed. */
export function removeNow (path: string): boolean {
  if (!isSmall(path)) return false
  rmSync(path, { recursive: true, force: true })
  return true
}

/** Removes a folder whose name nobody uses any more, after all that were given before. What it cannot remove stays. */
export function removeLater (path: string): void {
  if (waiting.has(path)) return
  waiting.add(path)
  removals.run(async () => {
    await thinOut(path).catch(() => {})
    await removeTree(path)
  }).catch(() => {}).finally(() => waiting.delete(path))
}

function isSmall (path: string): boolean {
  let { entries, bytes } = MOST_AT_ONCE
  const folders: Buffer[] = [Buffer.from(path)]
  try {
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const listing = opendirSync(folder, BYTES)
      try {
        for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
          const at = inside(folder, entry.name)
          if (entry.isDirectory()) folders.push(at)
          else bytes -= lstatSync(at).blocks * 512
          if (--entries < 0 || bytes < 0) return false
        }
      } finally {
        listing.closeSync()
      }
    }
  } catch (error) {
    // What cannot be measured, as its paths are too long, is not removed while others wait.
    return hasCode(error, 'ENOENT')
  }
  return true
}

/** @param name one character for each byte */
function inside (folder: Buffer, name: string): Buffer {
  return Buffer.concat([folder, Buffer.from('/'), Buffer.from(name, 'latin1')])
}

/** Removes files one after the other: `rm` asks for all of a folder's at once, and whatever else reads or writes a file waits behind them. */
async function thinOut (path: string): Promise<void> {
  const folders: Buffer[] = [Buffer.from(path)]
  let count = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for await (const entry of await opendir(folder, BYTES)) {
      // A server that ends does not wait for this; the next one finds the folder.
      if (++count % ENTRIES_AT_A_TIME === 0) await sleep(1, undefined, { ref: false })
      const at = inside(folder, entry.name)
      await (entry.isDirectory() ? rmdir(at) : unlink(at)).catch(() => {
        // What is not reached here, `rm` finds.
        if (entry.isDirectory() && folders.length < MOST_FOLDERS) folders.push(at)
      })
    }
  }
}
