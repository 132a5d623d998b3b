// The name of a host's certificate file, and nginx's map of open hosts to such files.
import { isOpen, shapeOf } from '../rules/hostname.ts'
import type { IngressRecord } from '../record.ts'

/** What one certificate is for: a host, or all hosts with one more label in front. */
export interface Subject {
  /** of its file */
  readonly name: string
  /** in the form of certificates: `app.example.com`, `*.example.com` */
  readonly host: string
}

/** What stands for the `*` of an open host in names of files: ours, and lego's. */
const OPEN_NAME = '_open'
export const LEGO_OPEN_NAME = '_'

/** First labels that no host with TLS may have: its certificate would be kept in the place of that for all names beside it. */
export const RESERVED_LABELS: ReadonlySet<string> = new Set([OPEN_NAME, LEGO_OPEN_NAME])

/** The certificates that rules with TLS need, each once. */
export function subjectsOf (records: readonly IngressRecord[]): Subject[] {
  const hosts = new Set(records.flatMap(({ rules }) => rules.filter(({ tls }) => tls).map(({ hostname }) => shapeOf(hostname))))
  return [...hosts].sort().map(subjectOf)
}

export function subjectOf (hostname: string): Subject {
  const host = shapeOf(hostname)
  return { host, name: host.replace('*', OPEN_NAME) }
}

/** Lines of nginx's map: exact hosts are matched before patterns, so hosts that a pattern matches as well have a line of their own. */
export function openHostsMap (subjects: readonly Subject[]): string {
  const open = subjects.filter(({ host }) => isOpen(host.split('.')[0] ?? ''))
  const parents = new Set(open.map(({ host }) => host.slice(2)))
  const exact = subjects.filter(({ host }) => !open.some((each) => each.host === host) && parents.has(host.slice(host.indexOf('.') + 1)))
  return [
    ...exact.map(({ host, name }) => `${host} ${name};`),
    ...open.map(({ host, name }) => `"~^[a-z0-9_-]+${host.slice(1).replaceAll('.', '\\.')}$" ${name};`),
    ''
  ].join('\n')
}
