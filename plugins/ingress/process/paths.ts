// Where this plugin and nginx keep their files. The folder belongs to the server; folders that nginx may write to are one level below, so that nginx cannot replace any other file.
import { join } from 'node:path'

export interface IngressPaths {
  /** nginx's working folder, which it cannot change */
  readonly folder: string
  /** names of open hosts and their certificates */
  readonly openHosts: string
  readonly certificates: string
  /** answers to ACME challenges: the root of what nginx serves for them, and their folder below it */
  readonly challenges: string
  readonly tokens: string
  /** nginx's error log */
  readonly log: string
  /** written by nginx: one file of requests for each instance */
  readonly requests: string
  /** written by nginx: cached answers of this server */
  readonly kept: string
  /** written by nginx */
  readonly run: string
  readonly temporary: string
  readonly empty: string
  /** secret: the own authority */
  readonly keys: string
  /** secret: lego's accounts, and certificates until they are installed */
  readonly acme: string
}

export const DECISION_SOCKET = 'decide.sock'
export const STATUS_SOCKET = 'status.sock'

export function pathsOf (dataDir: string): IngressPaths {
  const top = join(dataDir, 'ingress')
  const folder = join(top, 'nginx')
  return {
    folder,
    openHosts: join(folder, 'open-hosts.map'),
    certificates: join(folder, 'certificates'),
    challenges: join(folder, 'challenges'),
    tokens: join(folder, 'challenges/.well-known/acme-challenge'),
    log: join(top, 'nginx.log'),
    requests: join(folder, 'requests'),
    kept: join(folder, 'kept'),
    run: join(folder, 'run'),
    temporary: join(folder, 'temporary'),
    empty: join(folder, 'empty'),
    keys: join(top, 'keys'),
    acme: join(top, 'keys/acme')
  }
}
