// Finds the proxies of this data folder among all processes, by what they are: whoever started them, and wherever that one was killed.
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { environmentOf, livesIn, processIds, uidOf } from '../../../core/process/find.ts'
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
  const variables = await environmentOf(pid)
  if (identity === undefined || variables.get(FOLDER) !== folder) return []
  const isAtHome = namespace !== undefined && await livesIn(pid, namespace)
  const owner = await uidOf(pid)
  // Root's: it has not come as far as to drop its privileges.
  if (!isAtHome && owner !== uid && owner !== 0) return []
  return [{ identity, fingerprint: variables.get(FINGERPRINT) ?? '', isAtHome }]
}
