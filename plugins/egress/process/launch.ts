// Starts a proxy: in the namespace, with no descriptor of this server but its log's, and with only the privileges that it needs to become its own user.
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { endProcess } from '../../../core/process/end.ts'
import { boundLog } from '../../../core/process/log-file.ts'
import { spawnBackground, type Background } from '../../../core/process/spawn.ts'
import { untilAnswering } from '../../../core/process/until-answering.ts'
import type { ControlClient } from '../control/client.ts'
import { EgressUnavailable } from '../errors.ts'
import { marksOf } from './find.ts'
import { closedFolder, nodeGivesUpRoot } from './give-up-root.ts'
import type { EgressPaths } from './paths.ts'
import { PROGRAM, type Plan } from './plan.ts'

const MOST_LOG_BYTES = 8 * 2 ** 20
/** Its capabilities until it is loaded: to read Node and the program wherever they are, and to become its user. */
const NEEDED = ['setuid', 'setgid', 'dac_read_search'] as const

export interface LaunchOptions {
  readonly paths: EgressPaths
  readonly client: ControlClient
  /** time for the proxy to answer, `ms` */
  readonly startMs: number
}

/** Resolves once the proxy answers. @throws EgressUnavailable with its last log lines when it does not */
export async function launchProxy (plan: Plan, { paths, client, startMs }: LaunchOptions, signal: AbortSignal): Promise<ProcessIdentity> {
  const byItself = nodeGivesUpRoot()
  const closed = byItself ? undefined : await closedFolder([PROGRAM, process.execPath])
  if (closed !== undefined) throw EgressUnavailable(`Node.js ${process.version} of this system lets no program give up root, so the proxy's user must pass through ${closed} (chmod o+x), or take another Node.js`)
  await boundProxyLog(paths)
  const { identity, ended, end, lastWords } = await spawnProxy(plan, paths, byItself)
  const failed = async (how: string): Promise<Error> => EgressUnavailable(`it ${how}: ${await lastWords()}`)
  if (identity === undefined) throw await failed(`did not start (${await ended})`)
  try {
    const outcome = await untilProxyAnswers({ client, startMs }, signal, () => end() === undefined)
    if (outcome === 'gone') throw await failed(`ended at its start (${end()})`)
    if (outcome === 'silent') throw await failed(`did not answer within ${startMs} ms (plugins.egress.config.proxy.startTimeout)`)
    return identity
  } catch (error) {
    await endProcess(identity)
    throw error
  }
}

/** How the wait for the proxy to take connections ended. */
export async function untilProxyAnswers ({ client, startMs }: Pick<LaunchOptions, 'client' | 'startMs'>, signal: AbortSignal, isThere: () => boolean): ReturnType<typeof untilAnswering> {
  return await untilAnswering({ answers: async () => await client.takesConnections(), isThere, withinMs: startMs, signal })
}

export async function boundProxyLog ({ log }: EgressPaths): Promise<void> {
  await boundLog(log, MOST_LOG_BYTES)
}

async function spawnProxy ({ user: { uid, gid }, namespace, fingerprint }: Plan, paths: EgressPaths, byItself: boolean): Promise<Background> {
  const bounds = byItself ? ['-all', ...NEEDED.map((name) => `+${name}`)] : ['-all']
  // Each of these commands executes the next in the same process. A core dump would write secrets to the disk.
  return await spawnBackground({
    file: 'nsenter',
    args: [
      `--net=${namespace}`,
      'prlimit', '--core=0:0',
      'setpriv', '--clear-groups', '--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', `--bounding-set=${bounds.join()}`, ...byItself ? [] : [`--reuid=${uid}`, `--regid=${gid}`],
      process.execPath, PROGRAM, '--user', `${uid}:${gid}`, '--config', '../config.json'
    ],
    folder: paths.proxyFolder,
    environment: marksOf(paths.folder, fingerprint),
    log: paths.log
  })
}
