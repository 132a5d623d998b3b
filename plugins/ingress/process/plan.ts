// How nginx should run: its user, its place, its configuration, and a fingerprint by which a running one is recognized.
import { createHash } from 'node:crypto'
import type { IngressConfig } from '../manifest.ts'
import { renderConfig } from './nginx-config.ts'

/** Below the users of egress proxies and VMs; each data folder has its own. */
const FIRST_UID = 1_898_000_000
const UIDS = 1_000_000

export interface Plan {
  readonly uid: number
  /** path of the network namespace of guests */
  readonly namespace: string
  /** of `nginx.conf` */
  readonly text: string
  readonly fingerprint: string
}

export function uidOf (dataDir: string): number {
  return FIRST_UID + createHash('sha256').update(dataDir).digest().readUInt32BE() % UIDS
}

export function makePlan (config: IngressConfig, uid: number, namespace: string): Plan {
  const text = renderConfig(config)
  return { uid, namespace, text, fingerprint: createHash('sha256').update(JSON.stringify([uid, namespace, text])).digest('hex').slice(0, 32) }
}

export function configName (fingerprint: string): string {
  return `berth-${fingerprint}.conf`
}
