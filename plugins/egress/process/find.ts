// Finds the proxies of this data folder among all processes by their environment, whoever started them, and wherever that start was interrupted.
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { environmentOf, livesIn, processIds, uidOf } from '../../../core/process/find.ts'
import { readIdentity } from '../../../core/process/identity.ts'

export interface FoundProxy {
  readonly identity: ProcessIdentity
  readonly fingerprint: string
  /** whether it runs in the current namespace of that name */
  readonly isAtHome: boolean
}

const FOLDER = 'BERTH_EGRESS_FOLDER'
const FINGERPRINT = 'BERTH_EGRESS_FINGERPRINT'

/** The variables that a proxy is started with, by which it is found again. */
export function marksOf (folder: string, fingerprint: string): Record<string, string> {
  return { [FOLDER]: folder, [FINGERPRINT]: fingerprint }
}

/** @param uid the proxy's. A process of another user in another namespace only claims to be one */
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
  // A process of root has not dropped its privileges yet.
  if (!isAtHome && owner !== uid && owner !== 0) return []
  return [{ identity, fingerprint: variables.get(FINGERPRINT) ?? '', isAtHome }]
}
