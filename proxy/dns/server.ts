// The DNS server for guests in mode `all`, over UDP and TCP.
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import type { ReasonCode } from '../gate/reasons.ts'
import { addressOf } from '../listen/guests.ts'
import type { Services } from '../vms/services.ts'
import type { VmTable } from '../vms/table.ts'
import { isQuery } from './message.ts'

export interface DnsServers {
  readonly udp: UdpSocket
  readonly tcp: Server
}

const TCP_IDLE_MS = 10_000
const MAX_TCP_CONNECTIONS = 256
const DNS_PORT = 53

/** Makes both servers; whoever calls it lets them listen. */
export function createDns (answer: (query: Buffer) => Buffer, table: VmTable, services: Services): DnsServers {
  /** The answer for whoever sent it; `undefined` where silence is the answer. */
  function reply (query: Buffer, source: string): Buffer | undefined {
    const vm = table.find(source)
    // In the other mode a real resolver answers: this one would give names away that nobody redirects.
    if (vm === undefined || vm.policy.source.mode !== 'all' || !isQuery(query)) {
      services.counters.countRefusal('dns_refused')
      return undefined
    }
    services.counters.dnsQueries++
    if (vm.dnsQueries.take()) return answer(query)
    if (vm.limitLines.take()) record(vm.id, vm.policy.revision, 'dns_limited')
    else services.counters.countRefusal('dns_limited')
    return undefined
  }

  function record (vm: string, revision: number, reason: ReasonCode): void {
    services.audit.record({ vm, revision, protocol: 'dns', host: '', port: DNS_PORT, injected: [], reason, bytesIn: 0, bytesOut: 0, durationMs: 0 })
  }

  const udp = createSocket('udp4')
  udp.on('message', (query, { address, port }) => {
    const bytes = reply(query, address)
    if (bytes !== undefined) udp.send(bytes, port, address)
  })
  udp.on('error', error => services.log.error('the DNS socket failed', error))
  const tcp = createServer({ noDelay: true }, socket => {
    const source = addressOf(socket)
    socket.on('error', () => socket.destroy())
    if (!table.has(source)) socket.destroy()
    else readQueries(socket, query => reply(query, source))
  })
  tcp.maxConnections = MAX_TCP_CONNECTIONS
  return { udp, tcp }
}

/** Over TCP each message has its length before it. */
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
  })
}
