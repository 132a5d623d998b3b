// The DNS server for guests in mode `all`, over UDP and TCP.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import type { Recorder } from '../../audit/recorder.ts'
import { addressOf } from '../../gate/address.ts'
import type { Log } from '../../log/log.ts'
import type { Counters } from '../../log/counters.ts'
import type { Roster } from '../../workers/roster.ts'
import { isQuery } from './message.ts'

export interface DnsServers {
  readonly udp: UdpSocket
  readonly tcp: Server
}

export interface DnsServerOptions {
  readonly answer: (query: Buffer) => Buffer
  readonly roster: Roster
  readonly recorder: Recorder
  readonly counters: Counters
  readonly log: Log
}

const TCP_IDLE_MS = 10_000
const MAX_TCP_CONNECTIONS = 256
const MAX_TCP_CONNECTIONS_OF_VM = 16
const DNS_PORT = 53

/** Makes both servers; the caller lets them listen. */
export function createDns ({ answer, roster, recorder, counters, log }: DnsServerOptions): DnsServers {
  /** The answer for a sender; `undefined` for no answer. An exception affects only this message. */
  function reply (query: Buffer, source: string): Buffer | undefined {
    const guest = roster.find(source)
    // In the other mode a real resolver answers: synthetic addresses would lead nowhere there, since nothing redirects them.
    if (guest?.mode !== 'all' || !isQuery(query)) {
      recorder.count('dns_refused')
      return undefined
    }
    counters.dnsQueries++
    if (!guest.dnsQueries.take()) {
      if (guest.limitLines.take()) recorder.record({ vm: guest.id, revision: roster.revision ?? -1, protocol: 'dns', host: '', port: DNS_PORT, injected: [], reason: 'dns_limited', bytesIn: 0, bytesOut: 0, durationMs: 0 })
      else recorder.count('dns_limited')
      return undefined
    }
    try {
      return answer(query)
    } catch (error) {
      log.error('a DNS query could not be read', error, { vm: guest.id })
      return undefined
    }
  }

  const udp = createSocket('udp4')
  udp.on('message', (query, { address, port }) => {
    const bytes = reply(query, address)
    if (bytes !== undefined) udp.send(bytes, port, address)
  })
  udp.on('error', error => log.error('the DNS socket failed', error))
  const open = new Map<string, number>()
  const tcp = createServer({ noDelay: true }, socket => {
    const source = addressOf(socket)
    socket.on('error', () => socket.destroy())
    const others = open.get(source) ?? 0
    if (roster.find(source) === undefined || others >= MAX_TCP_CONNECTIONS_OF_VM) {
      socket.destroy()
      return
    }
    open.set(source, others + 1)
    socket.once('close', () => {
      const left = (open.get(source) ?? 0) - 1
      if (left > 0) open.set(source, left)
      else open.delete(source)
    })
    readQueries(socket, query => reply(query, source))
  })
  tcp.maxConnections = MAX_TCP_CONNECTIONS
  return { udp, tcp }
}

/** Over TCP a length precedes each message. */
function readQueries (socket: Socket, reply: (query: Buffer) => Buffer | undefined): void {
  let waiting: Buffer = Buffer.alloc(0)
  socket.setTimeout(TCP_IDLE_MS, () => socket.destroy())
  socket.on('data', chunk => {
    waiting = Buffer.concat([waiting, chunk])
    while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
      const end = 2 + waiting.readUInt16BE(0)
      const bytes = reply(waiting.subarray(2, end))
      waiting = waiting.subarray(end)
      if (bytes === undefined) return socket.destroy()
      const length = Buffer.alloc(2)
      length.writeUInt16BE(bytes.length)
      socket.write(Buffer.concat([length, bytes]))
    }
    // Answers that their guest does not read would be kept here without end. Until it reads, nothing more is taken from it; and if it never does, the connection counts as unused.
    if (!socket.writableNeedDrain || socket.isPaused()) return
    socket.pause()
    socket.once('drain', () => socket.resume())
  })
}
