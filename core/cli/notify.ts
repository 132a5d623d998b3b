// Tells systemd the state of the service. Node has no unix datagram sockets, so the command `systemd-notify` does it.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Logger } from '../contracts/services.ts'
import { programEnvironment } from '../process/environment.ts'

const TIMEOUT_MS = 5_000

/**
 * Sends READY=1 or STOPPING=1 when systemd asked for it. As root `systemd-notify` speaks in this process's name, so
 * `NotifyAccess=main` is enough; a server that is not root needs `all`. That is its parent, so no spawner may start it.
 * A message that cannot be sent is a warning only: the server itself works.
 */
export async function notifySystemd (state: 'ready' | 'stopping', socket: string | undefined, log: Logger): Promise<void> {
  if (socket === undefined) return
  try {
    await promisify(execFile)('systemd-notify', [state === 'ready' ? 'READY=1' : 'STOPPING=1'], { env: programEnvironment({ NOTIFY_SOCKET: socket }), timeout: TIMEOUT_MS })
  } catch (error) {
    log.warn({ err: error, state }, 'systemd could not be notified')
  }
}
