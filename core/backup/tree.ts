// Lists a data folder, without what belongs to a running server only.
import type { BigIntStats } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../errors/system-code.ts'

/** more files than a host's disk holds of Berth */
const MOST_ENTRIES = 2_000_000
/** files of the process that uses the folder */
export const OF_THE_LOCK = new Set(['lock.db', 'lock.db-journal', 'server.pid', 'restore-unfinished'])

export interface Found {
  /** path below the data folder */
  readonly path: string
  readonly stats: BigIntStats
  /** target of a symbolic link */
  readonly target?: string
}

/** A folder stands before its content, and always in the same order. Sockets, pipes and devices are left out: they belong to processes. What disappears meanwhile is left out, too. */
export async function findAll (dataDir: string, leftOut: ReadonlySet<string>): Promise<Found[]> {
  const found: Found[] = []
  const waiting = ['']
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const name of await ifThere(async () => await readdir(join(dataDir, folder))) ?? []) {
      const path = folder === '' ? name : `${folder}/${name}`
      if (OF_THE_LOCK.has(path) || leftOut.has(path)) continue
      const entry = await ifThere(async () => await entryAt(dataDir, path))
      if (entry === undefined) continue
      found.push(entry)
      if (found.length > MOST_ENTRIES) throw new Error(`${dataDir} has more than ${MOST_ENTRIES} files`)
      if (entry.stats.isDirectory()) waiting.push(path)
    }
  }
  return found.sort((a, b) => depthOf(a) - depthOf(b) || (a.path < b.path ? -1 : 1))
}

/** The files that have several of these names: each further name, with the first one. */
export function furtherNames (found: readonly Found[]): Map<string, string> {
  const first = new Map<string, string>()
  const further = new Map<string, string>()
  for (const { path, stats } of found) {
    // A name that was taken off a file meanwhile may look like one of the next file.
    if (!stats.isFile() || stats.nlink < 2n) continue
    const file = `${stats.dev}:${stats.ino}`
    const name = first.get(file)
    if (name === undefined) first.set(file, path)
    else further.set(path, name)
  }
  return further
}

async function entryAt (dataDir: string, path: string): Promise<Found | undefined> {
  const stats = await lstat(join(dataDir, path), { bigint: true })
  if (stats.isSymbolicLink()) return { path, stats, target: await readlink(join(dataDir, path)) }
  return stats.isFile() || stats.isDirectory() ? { path, stats } : undefined
}

function depthOf ({ path }: Found): number {
  return path.split('/').length
}

export async function ifThere<T> (read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}
