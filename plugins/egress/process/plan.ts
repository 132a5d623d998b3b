// How a managed proxy should run: its configuration, its user, and a fingerprint by which a running one is recognized.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { sizeBytes } from '../../../core/config/quantities.ts'
import type { ProxyPlace } from '../../networking/contract.ts'
import type { EgressConfig } from '../manifest.ts'
import type { ProxyUser } from './user.ts'

const programAt = (name: string): string => fileURLToPath(new URL(`../../../proxy/${name}`, import.meta.url))
/** the proxy's program, and that of its workers */
export const PROGRAM = programAt('main.js')
const WORKER = programAt('worker.js')
/** how long running requests may take when the proxy is replaced; nothing new is accepted meanwhile */
export const DRAIN_MS = 10_000

export interface Plan {
  readonly user: ProxyUser
  readonly namespace: string
  readonly config: unknown
  /** text of `roots.pem` */
  readonly roots: string
  readonly fingerprint: string
}

export interface PlanFacts {
  readonly config: EgressConfig
  readonly place: ProxyPlace
  readonly user: ProxyUser
  /** digest of the program's files */
  readonly program: string
}

export async function makePlan ({ config, place, user, program }: PlanFacts): Promise<Plan> {
  const roots = (await Promise.all(config.roots.map(async (path) => await readFile(path, 'utf8')))).join('\n')
  const written = proxyConfig(config, place, roots !== '')
  const fingerprint = digest(JSON.stringify([program, process.version, user, place.namespace, roots, written]))
  return { user, namespace: place.namespace, roots, config: written, fingerprint }
}

/** Paths are relative to the proxy's folder, since the proxy's user may not be able to pass through the folders above it. */
function proxyConfig (config: EgressConfig, place: ProxyPlace, hasRoots: boolean) {
  return {
    listen: {
      guests: place.listeners.map(({ kind, meant, port }) => ({ kind, at: `${place.gateway}:${port}`, port: meant })),
      dns: `${place.gateway}:${place.dnsPort}`,
      // A short path, wherever the folder is: a socket's path has at most 107 bytes.
      control: config.proxy.controlSocket ?? '/proc/self/cwd/control.sock'
    },
    ca: { directory: 'ca' },
    roots: hasRoots ? ['../roots.pem'] : [],
    allowPrivate: config.allowPrivate,
    // What is denied is sent with the policies, to a proxy of systemd's as well; the host's own addresses change besides.
    // The namespace has no IPv6.
    resolver: { servers: place.nameServers.map((server) => server.replace('#', ':')), ipv6: false },
    limits: { ...config.limits, drainMs: DRAIN_MS },
    ...config.proxy.workers === undefined ? {} : { workers: config.proxy.workers },
    audit: { file: 'audit/requests.jsonl', maxFileBytes: sizeBytes(config.audit.maxFileSize), files: config.audit.files }
  }
}

/** A digest of the programs with all that they import: a server of another version has others. */
export async function programDigest (): Promise<string> {
  return digest(JSON.stringify(await Promise.all([PROGRAM, WORKER].map(async (path) => await readFile(path, 'utf8')))))
}

function digest (text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
