// Puts the parts of a worker together: starts to serve VMs from its configuration, and ends in good order.
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { createSecureContext, rootCertificates } from 'node:tls'
import { AuditLog } from '../audit/log.ts'
import { openPipe } from '../audit/pipe.ts'
import { openAuthority } from '../tls/authority.ts'
import type { ProxyConfig } from '../config/schema.ts'
import type { Log } from '../log/log.ts'
import { Counters } from '../log/counters.ts'
import { createResolver } from '../upstream/resolver.ts'
import { createVet } from '../contract/vet.ts'
import { CIPHERS } from '../tls/ciphers.ts'
import { ContextCache } from '../tls/context-cache.ts'
import { createPlainGuestServer } from '../http/http1/guest-server.ts'
import { createTlsGuestServer } from '../http/tls-guest-server.ts'
import type { Services } from '../vms/services.ts'
import { startSweep } from '../vms/sweep.ts'
import { VmTable } from '../vms/table.ts'
import { Vm } from '../vms/vm.ts'
import { AUDIT_DESCRIPTOR, type FromWorker, type ToWorker, type WorkerReport } from './contract.ts'
import { addressOf } from '../gate/address.ts'
import { watchStalls } from './stall.ts'

export interface WorkerProgram {
  take (message: Exclude<ToWorker, { type: 'setup' }>, handle: unknown): Promise<void>
  /** Sends the waiting log lines. */
  lastLines (): void
}

const FRESH_MS = 2_000

export async function startWorker (config: ProxyConfig, log: Log, say: (message: FromWorker) => void): Promise<WorkerProgram> {
  let draining = false
  const takeStall = watchStalls()
  const services = await createServices(config, log, () => draining, address => table.bars(address))
  const table = new VmTable(policy => new Vm(policy, services, (vm, { secure, port }) => secure ? createTlsGuestServer(vm, port, services) : createPlainGuestServer(vm, port, services)), error => log.error('an unused connection to an origin did not close as it should', error))
  startSweep(table, services)
  return {
    async take (message, handle) {
      switch (message.type) {
        case 'policy':
          table.apply(message.revision)
          return enforced(message.id)
        case 'change':
          table.change(message.change)
          return enforced(message.id)
        case 'connection':
          return accept(message, handle, table)
        case 'report':
          services.audit.flush()
          return say({ type: 'report', id: message.id, report: reportOf(table, services, takeStall()) })
        case 'drain':
          draining = true
          await drain(table, services)
          for (const vm of table.all()) vm.end('draining')
          await services.audit.close()
          process.disconnect()
      }
    },
    lastLines: () => services.audit.flush()
  }

  function enforced (id: number): void {
    // The last log lines of removed VMs must be sent before the acknowledgement.
    services.audit.flush()
    say({ type: 'enforced', id })
  }
}

/** The VM may have gone, or have another epoch now, while the connection was on its way. */
function accept ({ way, vm: id, epoch }: Extract<ToWorker, { type: 'connection' }>, socket: unknown, table: VmTable): void {
  // A connection that was closed meanwhile arrives without a socket.
  if (!(socket instanceof Socket)) return
  socket.on('error', () => socket.destroy())
  const vm = table.find(addressOf(socket))
  if (vm === undefined || vm.id !== id || vm.epoch !== epoch) {
    socket.destroy()
    return
  }
  // HTTP/1 clients may close their sending side and still wait for the answer.
  socket.allowHalfOpen = !way.secure
  vm.accept(socket, way)
}

async function createServices (config: ProxyConfig, log: Log, draining: () => boolean, isBarred: (address: string) => boolean): Promise<Services> {
  const { limits } = config
  const counters = new Counters()
  const authority = await openAuthority(config.ca.directory)
  const roots = await Promise.all(config.roots.map(async path => await readFile(path, 'utf8')))
  return {
    limits,
    resolve: createResolver(config.resolver),
    vet: createVet({ allow: config.allowPrivate, deny: config.deny }, isBarred),
    originTrust: createSecureContext({ ca: [...rootCertificates, ...roots], minVersion: 'TLSv1.2', ciphers: CIPHERS }),
    authority,
    contexts: new ContextCache(authority, { perVm: limits.certificatesPerVm, total: limits.certificates }, counters),
    audit: new AuditLog(openPipe(AUDIT_DESCRIPTOR), counters),
    counters,
    log,
    draining
  }
}

function reportOf (table: VmTable, { counters, contexts, audit }: Services, stallSeconds: number): WorkerReport {
  const vms = [...table.all()]
  const { user, system } = process.cpuUsage()
  return {
    counted: counters.take(),
    connections: vms.reduce((sum, { connections }) => sum + connections.size, 0),
    requests: vms.reduce((sum, { exchanges }) => sum + exchanges.size, 0),
    readyCertificates: contexts.size,
    residentBytes: process.memoryUsage.rss(),
    stallSeconds,
    cpuSeconds: (user + system) / 1e6,
    auditBytes: audit.bytes,
    active: vms.filter(({ connections, exchanges }) => connections.size + exchanges.size > 0).map(({ id }) => id)
  }
}

/** Waits until nothing is under way, or until the time is over. */
async function drain (table: VmTable, services: Services): Promise<void> {
  const untilMs = performance.now() + services.limits.drainMs
  // A connection that was just taken is still in its handshake, or about to send its request: closing it now would refuse that request.
  await waitWhile(untilMs, () => [...table.all()].some(vm => vm.connections.size > 0 && performance.now() - vm.acceptedMs < FRESH_MS))
  for (const vm of table.all()) vm.drain()
  await waitWhile(untilMs, () => [...table.all()].some(vm => vm.exchanges.size > 0))
}

/** Requests of each protocol end in their own way, so polling is simpler than events of each. */
async function waitWhile (untilMs: number, busy: () => boolean): Promise<void> {
  while (busy() && performance.now() < untilMs) await new Promise(resolve => setTimeout(resolve, 20))
}
