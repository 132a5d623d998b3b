// Finds the processes of nginx that work in a folder, whoever has started them: its working folder and its title say what it is.
import { readFile, stat } from 'node:fs/promises'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { processIds } from '../../../core/process/ids.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { configName, type Plan } from './plan.ts'

export interface Found {
  readonly identity: ProcessIdentity
  /** whether it is the one that the others obey, or is about to be */
  readonly isMaster: boolean
  readonly words: string
  readonly network: string
}

export async function findProcesses (folder: string): Promise<Found[]> {
  const own = await inode(folder)
  if (own === undefined) return []
  const pids = await processIds()
  return (await Promise.all(pids.map(async (pid) => await inspect(pid, own)))).flat()
}

export async function isFit (found: Found, { fingerprint, namespace }: Plan): Promise<boolean> {
  return found.isMaster && found.words.includes(configName(fingerprint)) && found.network === await inode(namespace)
}

async function inspect (pid: number, own: string): Promise<Found[]> {
  if (await inode(`/proc/${pid}/cwd`) !== own) return []
  const identity = readIdentity(pid)
  const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  const network = await inode(`/proc/${pid}/ns/net`)
  if (identity === undefined || network === undefined) return []
  return [{ identity, words, network, isMaster: words.includes('.conf') }]
}

async function inode (path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path)
    return `${dev}:${ino}`
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR')) return undefined
    throw error
  }
}
