// Starts nginx: in the network of the guests, with the host's listening sockets, as its own user and without any capability.
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { copyFile, open, rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { endProcess } from '../../../core/process/end.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { wordsAfter } from '../../../core/process/log-words.ts'
import type { Listeners } from './listeners.ts'
import { STATUS_SOCKET, type IngressPaths } from './paths.ts'
import { configName, type Plan } from './plan.ts'

const START_MS = 20_000
const PAUSE_MS = 20
const MOST_LOG_BYTES = 4 * 2 ** 20
const FIRST_DESCRIPTOR = 3

export interface Launched {
  readonly identity: ProcessIdentity
  /** settles at its end */
  readonly ended: Promise<string>
}

/** @param answers whether it does, asked again and again. @throws Error with its last words when it does not start */
export async function launch (plan: Plan, paths: IngressPaths, openListeners: () => Promise<Listeners>, answers: () => Promise<boolean>, signal: AbortSignal): Promise<Launched> {
  // nginx would take it for one that is in use.
  await rm(join(paths.run, STATUS_SOCKET), { force: true })
  await boundLog(paths.log)
  const before = await sizeOf(paths.log)
  const { pid, ended } = await spawnNginx(plan, paths, openListeners)
  const identity = pid === undefined ? undefined : readIdentity(pid)
  let end: string | undefined
  void ended.then((how) => { end = how })
  const failed = async (how: string): Promise<Error> => new Error(`nginx ${how}: ${await wordsAfter(paths.log, before)}`)
  if (identity === undefined) throw await failed(`did not start (${await ended})`)
  try {
    const deadline = performance.now() + START_MS
    // Polled: no event tells that it listens.
    while (!await answers()) {
      signal.throwIfAborted()
      if (end !== undefined) throw await failed(`ended at its start (${end})`)
      if (performance.now() > deadline) throw await failed(`did not answer within ${START_MS} ms`)
      await sleep(PAUSE_MS)
    }
    return { identity, ended }
  } catch (error) {
    await endProcess(identity)
    throw error
  }
}

async function spawnNginx ({ uid, namespace, fingerprint }: Plan, paths: IngressPaths, openListeners: () => Promise<Listeners>): Promise<{ pid: number | undefined, ended: Promise<string> }> {
  const log = await open(paths.log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const listeners = await openListeners()
    const inherited = listeners.descriptors.map((_fd, index) => `${FIRST_DESCRIPTOR + index};`).join('')
    // Each of these becomes the next in the same process.
    const child = spawn('nsenter', [
      `--net=${namespace}`, 'prlimit', '--core=0:0',
      'setpriv', '--clear-groups', '--no-new-privs', '--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all', `--reuid=${uid}`, `--regid=${uid}`,
      'nginx', '-p', './', '-c', configName(fingerprint)
    ], {
      cwd: paths.folder,
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C', NGINX: inherited },
      // In a session of its own: it outlives the server, as the VMs do.
      detached: true,
      stdio: ['ignore', log.fd, log.fd, ...listeners.descriptors]
    })
    listeners.close()
    child.unref()
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => { resolve(error.message) })
      child.once('exit', (code, signal) => { resolve(signal ?? `exit code ${code ?? ''}`) })
    })
    return { pid: child.pid, ended }
  } finally {
    await log.close()
  }
}

/** One old file is kept. nginx goes on writing to the one it has, so that one is emptied. */
export async function boundLog (path: string): Promise<void> {
  if (await sizeOf(path) <= MOST_LOG_BYTES) return
  await copyFile(path, `${path}.1`)
  await truncate(path)
}

async function sizeOf (path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 0
    throw error
  }
}
