// Starts a proxy: in the namespace, with nothing of this server's open but its log, and with no more power than it takes to become its own user.
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { endProcess } from '../../../core/process/end.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { wordsAfter } from '../../../core/process/log-words.ts'
import type { ControlClient } from '../control/client.ts'
import { EgressUnavailable } from '../errors.ts'
import { marksOf } from './find.ts'
import { closedFolder, nodeGivesUpRoot } from './give-up-root.ts'
import { boundLog, openLog, sizeOf } from './log-file.ts'
import type { EgressPaths } from './paths.ts'
import { PROGRAM, type Plan } from './plan.ts'

const START_MS = 30_000
const PAUSE_MS = 10
/** What it has until it is loaded and becomes its user: to read Node and the program wherever they are, and to do that. */
const NEEDED = ['setuid', 'setgid', 'dac_read_search'] as const

export interface LaunchOptions {
  readonly paths: EgressPaths
  readonly client: ControlClient
}

/** Resolves once the proxy answers. @throws EgressUnavailable with its last words when it does not */
export async function launchProxy (plan: Plan, { paths, client }: LaunchOptions, signal: AbortSignal): Promise<ProcessIdentity> {
  const byItself = nodeGivesUpRoot()
  const closed = byItself ? undefined : await closedFolder([PROGRAM, process.execPath])
  if (closed !== undefined) throw EgressUnavailable(`Node.js ${process.version} of this system lets no program give up root, so the proxy's user must pass through ${closed} (chmod o+x), or take another Node.js`)
  await boundLog(paths.log)
  const start = await sizeOf(paths.log)
  const { identity, ended } = await spawnProxy(plan, paths, byItself)
  const failed = async (how: string): Promise<Error> => EgressUnavailable(`it ${how}: ${await wordsAfter(paths.log, start)}`)
  if (identity === undefined) throw await failed(`did not start (${await ended})`)
  let end: string | undefined
  void ended.then((how) => { end = how })
  try {
    await untilAnswering(client, signal, () => end === undefined)
    if (end !== undefined) throw await failed(`ended at its start (${end})`)
    return identity
  } catch (error) {
    await endProcess(identity)
    throw error instanceof NoAnswer ? await failed(error.message) : error
  }
}

class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** Resolves once the proxy takes connections, or is gone. @throws NoAnswer */
export async function untilAnswering (client: ControlClient, signal: AbortSignal, isThere: () => boolean): Promise<void> {
  const deadline = performance.now() + START_MS
  while (isThere() && !await answers(client)) {
    signal.throwIfAborted()
    if (performance.now() > deadline) throw new NoAnswer(`did not answer within ${START_MS} ms`)
    // Polled, since no event tells of it: the socket appears before anyone listens.
    await sleep(PAUSE_MS)
  }
}

async function spawnProxy (plan: Plan, paths: EgressPaths, byItself: boolean): Promise<{ identity: ProcessIdentity | undefined, ended: Promise<string> }> {
  const { user: { uid, gid }, namespace, fingerprint } = plan
  const log = await openLog(paths.log)
  const bounds = byItself ? ['-all', ...NEEDED.map((name) => `+${name}`)] : ['-all']
  try {
    // Each of these becomes the next in the same process. A core dump would put secrets on the disk.
    const child = spawn('nsenter', [
      `--net=${namespace}`,
      'prlimit', '--core=0:0',
      'setpriv', '--clear-groups', '--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', `--bounding-set=${bounds.join()}`, ...byItself ? [] : [`--reuid=${uid}`, `--regid=${gid}`],
      process.execPath, PROGRAM, '--user', `${uid}:${gid}`, '--config', '../config.json'
    ], {
      cwd: paths.proxyFolder,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C', ...marksOf(paths.folder, fingerprint) },
      // In a session of its own: it outlives the server, as the VMs do.
      detached: true,
      stdio: ['ignore', log.fd, log.fd]
    })
    child.unref()
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    })
    return { identity: child.pid === undefined ? undefined : readIdentity(child.pid), ended }
  } finally {
    await log.close()
  }
}

async function answers (client: ControlClient): Promise<boolean> {
  try {
    const link = await client.connect()
    link.destroy()
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET')) return false
    throw error
  }
}
