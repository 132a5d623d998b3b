// The socket on which nginx asks where a request goes. Only nginx's user can open it.
import { once } from 'node:events'
import { chmod, chown, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { Logger } from '../../../core/contracts/services.ts'
import { withDeadline } from '../../../core/jobs/deadline.ts'
import { listenUnix } from '../../../core/process/unix-socket.ts'
import { MOST_HEADER_BYTES } from '../process/nginx-config.ts'
import { DECISION_SOCKET } from '../process/paths.ts'
import type { Decision, Request } from './decide.ts'

/** nginx waits a little longer. */
const WAIT_MS = 60_000

export interface DecisionServer { close (): Promise<void> }

export async function startDecisionServer (folder: string, uid: number, decide: (request: Request) => Promise<Decision>, log: Logger): Promise<DecisionServer> {
  const server = createServer({ maxHeaderSize: 2 * MOST_HEADER_BYTES, keepAliveTimeout: 120_000 }, (request, response) => {
    request.resume()
    // When in doubt a request is not passed on: nginx then answers that the server is unavailable.
    answer(request, response, decide).catch((error: unknown) => {
      if (!response.destroyed) log.error({ err: error }, 'an ingress could not be decided about')
      response.destroy()
    })
  })
  await rm(join(folder, DECISION_SOCKET), { force: true })
  await listenUnix(server, folder, DECISION_SOCKET)
  const path = join(folder, DECISION_SOCKET)
  await chmod(path, 0o600)
  await chown(path, uid, uid)
  return { close: async () => { await close(server) } }
}

async function close (server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

async function answer (request: IncomingMessage, response: ServerResponse, decide: (request: Request) => Promise<Decision>): Promise<void> {
  const { headers } = request
  const header = (name: string): string | undefined => {
    const value = headers[name]
    return typeof value === 'string' ? value : undefined
  }
  const gone = new AbortController()
  response.once('close', () => { gone.abort(new Error('nobody waits for the answer')) })
  const signal = withDeadline(WAIT_MS, gone.signal)
  const decision = await decide({ port: Number(header('x-berth-port')), host: (header('x-berth-host') ?? '').toLowerCase(), uri: header('x-berth-uri') ?? '', client: header('x-berth-client') ?? '', header, signal })
  response.writeHead(decision.kind === 'forward' ? 200 : 403, { 'content-length': 0, ...fieldsOf(decision) }).end()
}

function fieldsOf (decision: Decision): Record<string, string> {
  if (decision.kind === 'forward') {
    return {
      'x-berth-target': decision.target, 'x-berth-instance': decision.instanceId, 'x-berth-ingress': decision.ingressId,
      'x-accel-expires': String(Math.round(decision.keepMs / 1000))
    }
  }
  if (decision.kind === 'redirect') return { 'x-berth-status': '308', 'x-berth-location': decision.location, 'x-accel-expires': '0' }
  const { status, reason, instanceId, ingressId } = decision
  return {
    'x-berth-status': String(status), 'x-berth-reason': printable(reason), 'x-accel-expires': '0',
    ...instanceId === undefined ? {} : { 'x-berth-instance': instanceId },
    ...ingressId === undefined ? {} : { 'x-berth-ingress': ingressId }
  }
}

function printable (text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 1000)
}
