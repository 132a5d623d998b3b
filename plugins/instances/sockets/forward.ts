// One TCP connection to a program in the guest, whose bytes run over a WebSocket. README.md describes the messages.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { withDeadline } from '../../../core/jobs/deadline.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { awaitAgent } from '../guest/agent.ts'
import { callPort, ECONNREFUSED, EINVAL, OLDER_GUEST } from '../guest/call-port.ts'
import type { Context } from '../context.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { MessageStream } from './messages.ts'

const AGENT_WAIT_MS = 5000
const CONNECT_MS = 10_000

/** Serves one socket to its end. Never rejects. */
export async function serveForward (context: Context, instance: LiveInstance, port: number, socket: WebSocket): Promise<void> {
  const messages = new MessageStream(socket)
  const late = withDeadline(CONNECT_MS)
  let connection: Duplex | undefined
  try {
    const link = await awaitAgent(instance, AGENT_WAIT_MS, messages.closed)
    const address = instance.record.spec.network?.enabled === true ? context.network?.addressOf(instance.id)?.ip : undefined
    connection = await callPort(link, port, address, AbortSignal.any([messages.closed, late]))
    await messages.sendJson({ connected: true })
    await relay(messages, connection)
    messages.close(1000)
  } catch (error) {
    const reason = connection === undefined && late.aborted ? `nobody took the connection to port ${port} within ${CONNECT_MS / 1000} s` : reasonOf(error, port)
    if (reason === undefined && !messages.closed.aborted) context.log.error({ err: error, instance: instance.id }, 'a forwarded connection failed')
    await messages.sendJson({ error: reason ?? 'internal error' })
    messages.close(1011)
  } finally {
    connection?.destroy()
  }
}

/** Returns when both sides have ended, or one has gone. */
async function relay (messages: MessageStream, connection: Duplex): Promise<void> {
  const over = new AbortController()
  const outward = sendOn(messages, connection)
  const inward = takeIn(messages, connection, over.signal)
  try {
    await Promise.race([Promise.all([outward, inward]), gone(messages.closed)])
  } finally {
    over.abort()
    connection.destroy()
    await Promise.allSettled([outward, inward])
  }
}

async function sendOn (messages: MessageStream, connection: Duplex): Promise<void> {
  for await (const chunk of connection as AsyncIterable<Buffer>) await messages.sendBinary(chunk)
  await messages.sendJson({ end: true })
}

/** The only text is `{"end":true}`: the client sends no more. */
async function takeIn (messages: MessageStream, connection: Duplex, over: AbortSignal): Promise<void> {
  for (;;) {
    const message = await messages.next(over)
    if (message === undefined || !connection.writable) return
    if (!message.binary) {
      connection.end()
      return
    }
    // The loop reads no further message meanwhile, which makes the client wait.
    if (!connection.write(message.data)) await once(connection, 'drain', { signal: over })
  }
}

async function gone (closed: AbortSignal): Promise<void> {
  if (closed.aborted) return
  await once(closed, 'abort')
}

/** Undefined: the fault is this server's. */
function reasonOf (error: unknown, port: number): string | undefined {
  if (isRefusal(error) && error.errno === ECONNREFUSED) return `nobody listens on port ${port}`
  if (isRefusal(error) && error.errno === EINVAL) return OLDER_GUEST
  return error instanceof BerthError || isLoss(error) || isRefusal(error) ? (error as Error).message : undefined
}
