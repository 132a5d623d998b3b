// The listeners for redirected connections: each looks up the VM of the source address, and passes the connection to its worker before a byte is read.
import { createServer, type Server, type Socket } from 'node:net'
import type { Recorder } from '../audit/recorder.ts'
import type { ReasonCode } from '../contract/reasons.ts'
import { Bucket } from '../gate/bucket.ts'
import type { Roster } from '../workers/roster.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { WorkerPool } from '../workers/pool.ts'
import { addressOf } from '../gate/address.ts'

export interface GuestListenerOptions {
  readonly way: GuestWay
  readonly roster: Roster
  readonly pool: WorkerPool
  readonly recorder: Recorder
}

/** Makes a listener for plain HTTP or for TLS. */
export function createGuestListener ({ way, roster, pool, recorder }: GuestListenerOptions): Server {
  // A flood from an address without a policy must not fill the log.
  const lines = new Bucket(5)

  function refuse (socket: Socket, reason: ReasonCode, vm: string, host: string, limit: Bucket): void {
    socket.destroy()
    if (!limit.take()) return recorder.count(reason)
    recorder.record({ vm, revision: roster.revision ?? -1, protocol: 'tcp', host, port: way.port, injected: [], reason, bytesIn: 0, bytesOut: 0, durationMs: 0 })
  }

  return createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000, pauseOnConnect: true }, socket => {
    socket.on('error', () => socket.destroy())
    const address = addressOf(socket)
    const guest = roster.find(address)
    if (guest === undefined) refuse(socket, 'unknown_source', '', address, lines)
    else if (guest.isCutOff) refuse(socket, 'cut_off', guest.id, '', guest.limitLines)
    else if (!pool.pass(guest, way, socket)) refuse(socket, 'too_many_connections', guest.id, '', guest.limitLines)
  })
}
