// Checks the disk of the data folder: what is free, and whether files can share their blocks.
import { constants } from 'node:fs'
import { access, copyFile, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { roundedSize } from '../../units.ts'
import type { Look } from './check.ts'

const FREE_ENOUGH = 10 * 2 ** 30

/** @param place `scratch`: a folder on the same disk; absent: the data folder */
export async function disk ({ dataFolder, scratch }: { readonly dataFolder: string, readonly scratch?: string }): Promise<Look> {
  const folder = await access(dataFolder, constants.R_OK).then(() => dataFolder, () => tmpdir())
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const shares = await reflinks(scratch ?? folder)
  const found = `${roundedSize(free)} free at ${folder}${shares === undefined ? '' : shares ? ', blocks are shared' : ', blocks are not shared: forks and snapshots are copies'}`
  return free < FREE_ENOUGH ? { verdict: 'warning', found, remedy: 'images, disks and memory need room: 10 GiB or more' } : { verdict: 'ok', found }
}

/** Undefined when this user may not write there. */
async function reflinks (folder: string): Promise<boolean | undefined> {
  const own = await mkdtemp(join(folder, '.berth-doctor-')).catch(() => undefined)
  if (own === undefined) return undefined
  try {
    await writeFile(join(own, 'a'), 'x')
    return await copyFile(join(own, 'a'), join(own, 'b'), constants.COPYFILE_FICLONE_FORCE).then(() => true, () => false)
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}
