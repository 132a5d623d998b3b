// The user of a managed proxy. No other process has it, so that only root and the proxy read its key and its memory.
import { createHash } from 'node:crypto'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { HostCommandFailed } from '../../../core/process/run.ts'

export interface ProxyUser {
  readonly uid: number
  readonly gid: number
}

const DEFAULT_NAME = 'berth-egress'
/** Below the users of VMs, which begin at 1,900,000,000; each data folder has its own. */
const FIRST_UID = 1_899_000_000
const UIDS = 1_000_000
/** The last one owns files of instances at rest (plugins/instances/users). */
const OTHERS = UIDS - 1
const NOT_FOUND = 2

/** @param wanted a name or a number; absent: `berth-egress` where there is one, else a number that follows from the data folder */
export async function resolveUser (wanted: string | undefined, dataDir: string, commands: HostCommands): Promise<ProxyUser> {
  if (wanted !== undefined && /^\d+$/.test(wanted)) return checked({ uid: Number(wanted), gid: Number(wanted) }, wanted)
  const named = await lookUp(wanted ?? DEFAULT_NAME, commands)
  if (named !== undefined) return checked(named, wanted ?? DEFAULT_NAME)
  if (wanted !== undefined) throw new Error(`plugins.egress.config.proxy.user: this host has no user ${wanted}`)
  const number = createHash('sha256').update(dataDir).digest().readUInt32BE() % UIDS
  const uid = FIRST_UID + (number === OTHERS ? 0 : number)
  return { uid, gid: uid }
}

async function lookUp (name: string, commands: HostCommands): Promise<ProxyUser | undefined> {
  try {
    const { stdout } = await commands.run('getent', ['passwd', name])
    const [, , uid, gid] = stdout.trim().split(':')
    return { uid: Number(uid), gid: Number(gid) }
  } catch (error) {
    if (error instanceof HostCommandFailed && error.failure.exitCode === NOT_FOUND) return undefined
    throw error
  }
}

function checked (user: ProxyUser, name: string): ProxyUser {
  const fits = [user.uid, user.gid].every((id) => Number.isInteger(id) && id > 0 && id < 2 ** 31)
  if (!fits) throw new Error(`plugins.egress.config.proxy.user: ${name} is root, or no user that can be had`)
  return user
}
