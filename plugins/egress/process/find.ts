// Finds the proxies of this data folder among all processes, by what they are: whoever started them, and wherever that one was killed.
import { readFile, stat } from 'node:fs/promises'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { processIds } from '../../../core/process/ids.ts'
import { readIdentity } from '../../../core/process/identity.ts'

export interface FoundProxy {
  readonly identity: ProcessIdentity
  readonly fingerprint: string
  /** whether it lives in the namespace of that name as it is now */
  readonly isAtHome: boolean
}

const FOLDER = 'BERTH_EGRESS_FOLDER'
const FINGERPRINT = 'BERTH_EGRESS_FINGERPRINT'

/** The variables that a proxy is started with, by which it is found again. */
export function marksOf (folder: string, fingerprint: string): Record<string, string> {
  return { [FOLDER]: folder, [FINGERPRINT]: fingerprint }
}

/** @param uid the proxy's. A process of another user that lives elsewhere only says that it is one */
export async function findProxies (folder: string, namespace: string | undefined, uid: number): Promise<FoundProxy[]> {
  const pids = await processIds()
  return (await Promise.all(pids.map(async (pid) => await inspect(pid, folder, namespace, uid)))).flat()
}

async function inspect (pid: number, folder: string, namespace: string | undefined, uid: number): Promise<FoundProxy[]> {
  const identity = readIdentity(pid)
  const variables = new Map((await environmentOf(pid)).map((text): [string, string] => {
    const at = text.indexOf('=')
    return [text.slice(0, at), text.slice(at + 1)]
  }))
  if (identity === undefined || variables.get(FOLDER) !== folder) return []
  const isAtHome = namespace !== undefined && await isSame(`/proc/${pid}/ns/net`, namespace)
  const owner = await ownerOf(pid)
  // Root's: it has not come as far as to drop its privileges.
  if (!isAtHome && owner !== uid && owner !== 0) return []
  return [{ identity, fingerprint: variables.get(FINGERPRINT) ?? '', isAtHome }]
}

async function environmentOf (pid: number): Promise<string[]> {
  return await unlessGone(async () => (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0'), [])
}

async function ownerOf (pid: number): Promise<number | undefined> {
  return await unlessGone(async () => (await stat(`/proc/${pid}`)).uid, undefined)
}

async function isSame (path: string, other: string): Promise<boolean> {
  return await unlessGone(async () => {
    const [one, two] = await Promise.all([stat(path), stat(other)])
    return one.ino === two.ino && one.dev === two.dev
  }, false)
}

async function unlessGone<T> (read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return otherwise
    throw error
  }
}
