// Starts worker processes from descriptors that were opened while this process was still root, since program and Node may lie where its user cannot pass through.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { accessSync, constants, openSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Starts one worker. Its channel is open; its log lines arrive on `stdio[AUDIT_DESCRIPTOR]`. */
export type Launch = () => ChildProcess

// As the parent's program sees them, dist/proxy/main.js: see setup/bundled-proxy.js.
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = relative(ROOT, fileURLToPath(new URL('worker.js', import.meta.url)))
/** descriptors of Node and of the program's folder; standard streams, channel and log lines come before them */
const [NODE, FOLDER] = [5, 6]
/** Variables for the parent alone: how the server finds it, the sockets that systemd passes, and systemd's notification socket. */
const PRIVATE = /^(BERTH_|LISTEN_|NOTIFY_)/

/** Workers can be started from here. */
export interface Prepared {
  readonly launch: Launch
  /**
   * A checkout made with a strict umask can be read by root alone, and no worker would start from it. Must be called once this process has become its user.
   * @throws Error that says what to do
   */
  requireReadable (): void
}

/** Opens the files that workers are started from. Must be called before this process becomes another user. */
export function prepareLaunch (environment: Readonly<Record<string, string | undefined>>): Prepared {
  const node = openSync(process.execPath, 'r')
  const folder = openSync(ROOT, 'r')
  const env = Object.fromEntries(Object.entries(environment).filter(([name]) => !PRIVATE.test(name)))
  const [command = '', ...args] = [
    ...endsWithParent(),
    `/proc/self/fd/${NODE}`, ...process.execArgv,
    // Links would be resolved to a path that only root can pass through.
    '--preserve-symlinks', '--preserve-symlinks-main',
    `/proc/self/fd/${FOLDER}/${PROGRAM}`
  ]
  return {
    launch: () => spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe', node, folder], env }),
    requireReadable () {
      try {
        accessSync(`/proc/self/fd/${folder}/${PROGRAM}`, constants.R_OK)
      } catch (error) {
        throw new Error(`the proxy's user may not read the proxy's program: chmod -R go=rX ${ROOT}`, { cause: error })
      }
    }
  }
}

/**
 * The prefix of a worker's command that makes the worker end with this process: a surviving worker would get no more policies. It is empty where setpriv may not run:
 * the filter of system calls of the systemd unit forbids it capset(2), and there systemd ends the processes of a service. A worker also ends by itself when its channel closes.
 */
function endsWithParent (): string[] {
  const prefix = ['setpriv', '--pdeathsig', 'KILL']
  const { status } = spawnSync(prefix[0] ?? '', [...prefix.slice(1), 'true'], { stdio: 'ignore', timeout: 10_000 })
  return status === 0 ? prefix : []
}
