// Puts the parts of the parent together: starts a proxy from its configuration, and stops it in good order.
import type { Server } from 'node:net'
import { once } from 'node:events'
import { Recorder } from '../audit/recorder.ts'
import { AuditStore } from '../audit/store.ts'
import { TracedRequests } from '../audit/traced.ts'
import { openAuthority } from '../tls/authority.ts'
import type { ProxyConfig } from '../config/schema.ts'
import { createControl } from './control-server.ts'
import { createAnswer } from './dns/answer.ts'
import { createDns, type DnsServerOptions } from './dns/server.ts'
import { createGuestListener } from './guest-listener.ts'
import { listen } from './listen.ts'
import { parsePlace, type Place } from './place.ts'
import type { Log } from '../log/log.ts'
import { Counters } from '../log/counters.ts'
import { createMetrics } from './metrics.ts'
import { Roster } from '../workers/roster.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { Launch } from '../workers/launch.ts'
import { WorkerPool } from '../workers/pool.ts'

export interface Program {
  /** Takes no more connections, lets running requests finish for a while, then ends. */
  stop (): Promise<void>
}

export interface ProgramOptions {
  readonly config: ProxyConfig
  /** sockets that systemd passed, by name */
  readonly inherited: ReadonlyMap<string, number>
  readonly launch: Launch
  readonly log: Log
}

/** Starts the proxy. It takes no guest's connection before its first policy: on inherited sockets, which outlive a restart, connections wait for it. */
export async function startProgram ({ config, inherited, launch, log }: ProgramOptions): Promise<Program> {
  const guestPlaces = readGuestPlaces(config, inherited)
  // Made here when it does not exist yet, so that all workers find the same one.
  const { certificatePem } = await openAuthority(config.ca.directory)
  const counters = new Counters()
  const roster = new Roster(config.limits)
  const store = openStore(config, log)
  const recorder = new Recorder(store, counters)
  const traced = new TracedRequests(store)
  const pool = new WorkerPool({ config, launch, roster, store, taker: traced, counters, log })
  const listeners: Server[] = []
  let opened: Promise<void> | undefined
  const openGuests = async () => {
    for (const { way, place } of guestPlaces) {
      const server = createGuestListener({ way, roster, pool, recorder })
      listeners.push(server)
      await listen(server, place)
    }
    log.info('taking connections')
  }
  const opensGuests = async () => { await (opened ??= openGuests()) }
  const control = createControl({
    roster,
    certificatePem,
    ranges: { allowPrivate: config.allowPrivate, deny: config.deny },
    metrics: createMetrics({ counters, roster, pool, store, traced }),
    inForce: () => pool.inForce,
    enforce: async revision => {
      await pool.enforce(revision)
      await opensGuests()
    },
    change: async change => {
      await pool.change(change)
      await opensGuests()
    },
    readAudit: async query => {
      await pool.lines()
      return await store.read(query)
    },
    takeTraced: () => traced.take(),
    onFailure: error => log.error('a request to the control socket failed', error)
  })
  listeners.push(control)
  await listen(control, parsePlace(config.listen.control, inherited))
  const closeDns = await startDns(config, inherited, { answer: createAnswer(config.dns), roster, recorder, counters, log })
  log.info('listening', { pid: process.pid, control: config.listen.control, http: config.listen.http, https: config.listen.https, guests: config.listen.guests.map(({ at }) => at).join(' '), dns: config.listen.dns })
  return {
    async stop () {
      log.info('draining')
      for (const server of listeners) server.close()
      control.closeAllConnections()
      closeDns()
      await pool.close()
      await store.flush()
      log.info('stopped')
    }
  }
}

/** Read at the start, so that an invalid place stops it. */
function readGuestPlaces ({ listen: { http, https, httpPort, httpsPort, guests } }: ProxyConfig, inherited: ReadonlyMap<string, number>): Array<{ readonly way: GuestWay, readonly place: Place }> {
  const written = [{ kind: 'http', at: http, port: httpPort }, { kind: 'https', at: https, port: httpsPort }, ...guests]
  return written.flatMap(({ kind, at, port }) => at === undefined ? [] : [{ way: { secure: kind === 'https', port }, place: parsePlace(at, inherited) }])
}

function openStore ({ audit: { file, maxFileBytes, files } }: ProxyConfig, log: Log): AuditStore {
  return new AuditStore({ folder: `${file}.d`, vmBytes: maxFileBytes, totalBytes: maxFileBytes * files }, log)
}

async function startDns (config: ProxyConfig, inherited: ReadonlyMap<string, number>, options: DnsServerOptions): Promise<() => void> {
  if (config.listen.dns === undefined) return () => {}
  const { udp, tcp } = createDns(options)
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
