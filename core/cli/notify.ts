// Tells systemd the state of the service. Node has no unix datagram sockets, so the command `systemd-notify` does it.
import type { Logger } from '../contracts/services.ts'
import { createHostCommands } from '../process/run.ts'

const TIMEOUT_MS = 5_000

/**
 * Sends READY=1 or STOPPING=1 when systemd asked for it. As root `systemd-notify` speaks in this process's name, so
 * `NotifyAccess=main` is enough; a server that is not root needs `all`.
 * A message that cannot be sent is a warning only: the server itself works.
 */
export async function notifySystemd (state: 'ready' | 'stopping', socket: string | undefined, log: Logger): Promise<void> {
  if (socket === undefined) return
  try {
    await createHostCommands().run('systemd-notify', [state === 'ready' ? 'READY=1' : 'STOPPING=1'], { env: { NOTIFY_SOCKET: socket }, timeoutMs: TIMEOUT_MS })
  } catch (error) {
    log.warn({ err: error, state }, 'systemd could not be notified')
  }
}
