// Starts nginx: in the network of the guests, with the host's listening sockets, as its own user and without any capability.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { endProcess } from '../../../core/process/end.ts'
import { boundLog } from '../../../core/process/log-file.ts'
import { FIRST_EXTRA, spawnBackground, type Background } from '../../../core/process/spawn.ts'
import { untilAnswering } from '../../../core/process/until-answering.ts'
import { openListeners, type ListenersAt } from './listeners.ts'
import { STATUS_SOCKET, type IngressPaths } from './paths.ts'
import { configName, type Plan } from './plan.ts'

const START_MS = 20_000
const MOST_LOG_BYTES = 4 * 2 ** 20

/** @param answers is called until nginx answers. @throws Error with nginx's last log lines when it does not start */
export async function launch (plan: Plan, paths: IngressPaths, listeners: ListenersAt, answers: () => Promise<boolean>, signal: AbortSignal): Promise<ProcessIdentity> {
  // nginx would refuse an existing socket as in use.
  await rm(join(paths.run, STATUS_SOCKET), { force: true })
  await boundNginxLog(paths)
  const { identity, ended, end, lastWords } = await spawnNginx(plan, paths, listeners)
  const failed = async (how: string): Promise<Error> => new Error(`nginx ${how}: ${await lastWords()}`)
  if (identity === undefined) throw await failed(`did not start (${await ended})`)
  try {
    const outcome = await untilAnswering({ answers, isThere: () => end() === undefined, withinMs: START_MS, signal })
    if (outcome === 'gone') throw await failed(`ended at its start (${end()})`)
    if (outcome === 'silent') throw await failed(`did not answer within ${START_MS} ms`)
    return identity
  } catch (error) {
    await endProcess(identity)
    throw error
  }
}

export async function boundNginxLog ({ log }: IngressPaths): Promise<void> {
  await boundLog(log, MOST_LOG_BYTES)
}

async function spawnNginx ({ uid, namespace, fingerprint }: Plan, paths: IngressPaths, listeners: ListenersAt): Promise<Background> {
  // Each of these commands executes the next in the same process.
  return await spawnBackground({
    file: 'nsenter',
    args: [
      `--net=${namespace}`, 'prlimit', '--core=0:0',
      'setpriv', '--clear-groups', '--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all', `--reuid=${uid}`, `--regid=${uid}`,
      'nginx', '-p', './', '-c', configName(fingerprint)
    ],
    folder: paths.folder,
    // nginx inherits listening sockets as from a predecessor of its own.
    environment: { NGINX: listeners.ports.map((_port, index) => `${FIRST_EXTRA + index};`).join('') },
    log: paths.log,
    openExtra: async () => await openListeners(listeners)
  })
}
