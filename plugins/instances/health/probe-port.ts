// A probe of a port of the guest, whose program may be hostile: it is bounded in time, and reads the head of the answer only.
import { request } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect as startTls } from 'node:tls'
import { within } from '../../../core/jobs/deadline.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { callPort, ECONNREFUSED, EINVAL, OLDER_GUEST } from '../guest/call-port.ts'
import { isRefusal } from '../guest/guest-errors.ts'
import { printable } from '../validate/env.ts'
import type { HttpCheck, TcpCheck } from './check.ts'

const MOST_HEAD_BYTES = 16 * 1024

/** Why the probe failed; undefined when it did not. */
export async function probePort (link: GuestLink, check: TcpCheck | HttpCheck, address: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  return await within(check.timeoutMs, [signal], async (over) => {
    let connection: Duplex | undefined
    try {
      connection = await callPort(link, check.port, address, over)
      return check.type === 'tcp' ? undefined : unexpected(check, await statusOf(connection, check, over))
    } catch (error) {
      return over.aborted ? `no answer within ${check.timeoutMs} ms` : reason(error, check.port)
    } finally {
      connection?.destroy()
    }
  })
}

async function statusOf (connection: Duplex, { path, port, scheme }: HttpCheck, signal: AbortSignal): Promise<number> {
  // The probe asks whether the program answers, not who it is; and the connection crosses no network. So no certificate is checked.
  const stream = scheme === 'https' ? startTls({ socket: connection, rejectUnauthorized: false }) : connection
  // A request on a connection that has ended would hear nothing, not even its signal.
  if (stream.destroyed) throw new Error('the connection was closed')
  return await new Promise<number>((resolve, reject) => {
    const asked = request({
      createConnection: () => stream,
      path,
      headers: { host: `localhost:${port}`, 'user-agent': 'berth-health', connection: 'close' },
      maxHeaderSize: MOST_HEAD_BYTES,
      signal
    })
    asked.on('response', (response) => {
      resolve(response.statusCode ?? 0)
      asked.destroy()
    })
    // The program answers with another protocol.
    asked.on('upgrade', (response) => { resolve(response.statusCode ?? 0) })
    asked.on('error', reject)
    asked.end()
  })
}

function unexpected ({ expectedStatus }: HttpCheck, status: number): string | undefined {
  const isGood = expectedStatus === undefined ? status >= 200 && status < 400 : status === expectedStatus
  return isGood ? undefined : `status ${status}`
}

function reason (error: unknown, port: number): string {
  if (isRefusal(error) && error.errno === ECONNREFUSED) return `nobody listens on port ${port}`
  if (isRefusal(error) && error.errno === EINVAL) return OLDER_GUEST
  return printable(error instanceof Error ? error.message : String(error))
}
