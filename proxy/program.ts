// Puts the parts together: from a configuration to a proxy that listens, and back to one that has ended in good order.
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import { once } from 'node:events'
import { AuditLog } from './audit/log.ts'
import { readAudit } from './audit/read.ts'
import { openAuthority } from './ca/authority.ts'
import type { ProxyConfig } from './config/schema.ts'
import { createControl } from './control/server.ts'
import { createAnswer } from './dns/answer.ts'
import { createDns } from './dns/server.ts'
import { createGuestListener, type GuestKind } from './listen/guests.ts'
import { listen } from './listen/listen.ts'
import { parsePlace, type Place } from './listen/place.ts'
import type { Log } from './log/log.ts'
import { Counters } from './metrics/counters.ts'
import { createMetrics } from './metrics/metrics.ts'
import { createResolver } from './resolve/resolver.ts'
import { createVet } from './resolve/vet.ts'
import { CIPHERS } from './tls/ciphers.ts'
import { ContextCache } from './tls/context-cache.ts'
import { createGuestServers } from './tls/guest-server.ts'
import type { Services } from './vms/services.ts'
import { startSweep } from './vms/sweep.ts'
import { VmTable } from './vms/table.ts'
import { Vm } from './vms/vm.ts'

export interface Program {
  /** Stops taking connections, lets running requests finish for a while, then ends. */
  stop (): Promise<void>
}

const FRESH_MS = 2_000

/** Starts the proxy. It takes no guest's connection before its first policy: on inherited sockets, which outlive a restart, they wait for it. */
export async function startProgram (config: ProxyConfig, inherited: ReadonlyMap<string, number>, log: Log): Promise<Program> {
  let draining = false
  const services = await createServices(config, log, () => draining, address => table.bars(address))
  const guestPlaces = readGuestPlaces(config, inherited)
  const table = new VmTable(policy => new Vm(policy, services, vm => createGuestServers(vm, services)))
  const metrics = createMetrics(services.counters, table, services.contexts)
  const control = createControl({
    table,
    certificatePem: services.authority.certificatePem,
    metrics,
    enforced: () => { opened ??= openGuests(); return opened },
    readAudit: async query => {
      services.audit.flush()
      return await readAudit(config.audit.file, query)
    },
    onFailure: error => log.error('a request to the control socket failed', error)
  })
  const listeners: Server[] = [control]
  let opened: Promise<void> | undefined
  const openGuests = async () => {
    for (const [kind, place] of guestPlaces) {
      const server = createGuestListener(kind, table, services)
      listeners.push(server)
      await listen(server, place)
    }
    log.info('taking connections')
  }
  await listen(control, parsePlace(config.listen.control, inherited))
  const closeDns = await startDns(config, inherited, table, services)
  const stopSweep = startSweep(table, services)
  log.info('listening', { pid: process.pid, control: config.listen.control, http: config.listen.http, https: config.listen.https, dns: config.listen.dns })
  return {
    async stop () {
      draining = true
      log.info('draining')
      for (const server of listeners) server.close()
      control.closeAllConnections()
      closeDns()
      await drain(table, services)
      stopSweep()
      for (const vm of table.all()) vm.end('draining')
      services.audit.close()
      log.info('stopped')
    }
  }
}

/** Read at once, so that what is wrong with them stops the start. */
function readGuestPlaces ({ listen: { http, https } }: ProxyConfig, inherited: ReadonlyMap<string, number>): [GuestKind, Place][] {
  const written: [GuestKind, string | undefined][] = [['plain', http], ['tls', https]]
  return written.flatMap(([kind, place]) => place === undefined ? [] : [[kind, parsePlace(place, inherited)]])
}

async function createServices (config: ProxyConfig, log: Log, draining: () => boolean, isBarred: (address: string) => boolean): Promise<Services> {
  const { limits } = config
  const counters = new Counters()
  const authority = await openAuthority(config.ca.directory)
  const roots = await Promise.all(config.roots.map(async path => await readFile(path, 'utf8')))
  return {
    limits,
    ports: { http: config.listen.httpPort, https: config.listen.httpsPort },
    resolve: createResolver(config.resolver),
    vet: createVet({ allow: config.allowPrivate, deny: config.deny }, isBarred),
    originTrust: createSecureContext({ ca: [...rootCertificates, ...roots], minVersion: 'TLSv1.2', ciphers: CIPHERS }),
    authority,
    contexts: new ContextCache(authority, { perVm: limits.certificatesPerVm, total: limits.certificates }, counters),
    audit: new AuditLog(config.audit, counters, log),
    counters,
    log,
    draining
  }
}

async function startDns (config: ProxyConfig, inherited: ReadonlyMap<string, number>, table: VmTable, services: Services): Promise<() => void> {
  if (config.listen.dns === undefined) return () => {}
  const { udp, tcp } = createDns(createAnswer(config.dns), table, services)
  const place = parsePlace(config.listen.dns, inherited)
  await listen(tcp, place)
  const listening = once(udp, 'listening')
  const other = place.kind === 'descriptor' ? parsePlace(`${config.listen.dns}-udp`, inherited) : place
  if (other.kind === 'descriptor') udp.bind({ fd: other.descriptor })
  else if (other.kind === 'address') udp.bind(other.port, other.host)
  else throw new Error('listen.dns: DNS needs an address or a passed socket')
  await listening
  return () => {
    udp.close()
    tcp.close()
  }
}

/** Waits until nothing is under way, or until it has taken long enough. */
async function drain (table: VmTable, services: Services): Promise<void> {
  const untilMs = performance.now() + services.limits.drainMs
  // A connection that was taken a moment ago is still in its handshake, or about to send its request: closing it now would be refusing it.
  await waitWhile(untilMs, () => [...table.all()].some(vm => vm.connections.size > 0 && performance.now() - vm.acceptedMs < FRESH_MS))
  for (const vm of table.all()) vm.drain()
  await waitWhile(untilMs, () => [...table.all()].some(vm => vm.exchanges.size > 0))
}

/** Requests of all protocols end in their own ways: looking is simpler than being told by each. */
async function waitWhile (untilMs: number, busy: () => boolean): Promise<void> {
  while (busy() && performance.now() < untilMs) await new Promise(resolve => setTimeout(resolve, 20))
}
