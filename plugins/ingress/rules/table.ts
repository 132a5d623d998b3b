// Which rule a request matches: exact hosts before open ones, those with more literal labels first, then the longest path.
import type { IngressRecord, IngressRule } from '../record.ts'
import { matchHost, shapeOf } from './hostname.ts'

export interface Asked {
  readonly port: number
  /** in lower case, without a port */
  readonly host: string
  /** decoded and without dot segments */
  readonly path: string
}

export interface Found {
  readonly ingress: IngressRecord
  readonly rule: IngressRule
  readonly captures: ReadonlyMap<string, string>
  /** whether plain HTTP was used for a host that is served with TLS */
  readonly redirect: boolean
  /** whether the first segment of the path alone determines the rule */
  readonly byFirstSegment: boolean
  /** whether its host has rules for some paths only */
  readonly hasPaths: boolean
}

interface Entry { readonly ingress: IngressRecord, readonly rule: IngressRule, readonly redirect: boolean }

export class RuleTable {
  /** by port and shape, longest path first */
  readonly #entries = new Map<string, Entry[]>()
  /** by port and number of labels: which labels are open in shapes that have open ones, most precise first. Not the shapes themselves, of which there may be tens of thousands: a host matches at most one for each of these. */
  readonly #open = new Map<string, string[]>()

  /** @param httpPort on which hosts are redirected to TLS */
  constructor (records: readonly IngressRecord[], httpPort: number | undefined) {
    const open = new Map<string, Set<string>>()
    for (const ingress of records) {
      for (const rule of ingress.rules) {
        this.#add(rule.port, { ingress, rule, redirect: false }, open)
        if (rule.redirectHttp && httpPort !== undefined) this.#add(httpPort, { ingress, rule, redirect: true }, open)
      }
    }
    for (const entries of this.#entries.values()) entries.sort((one, other) => other.rule.path.length - one.rule.path.length)
    for (const [key, masks] of open) this.#open.set(key, [...masks].sort((one, other) => ownLabels(other) - ownLabels(one) || (one < other ? 1 : -1)))
  }

  find ({ port, host, path }: Asked): Found | undefined {
    const labels = host.split('.')
    const open = (this.#open.get(openKeyOf(port, labels.length)) ?? []).map((mask) => labels.map((label, index) => mask[index] === OPEN ? OPEN : label).join('.'))
    const shape = [host, ...open].find((each) => this.#entries.has(keyOf(port, each)) && matchHost(each, host) !== undefined)
    const entries = shape === undefined ? [] : this.#entries.get(keyOf(port, shape)) ?? []
    const entry = entries.find(({ rule }) => isBelow(path, rule.path))
    const captures = entry === undefined ? undefined : matchHost(entry.rule.hostname, host)
    if (entry === undefined || captures === undefined) return undefined
    return { ...entry, captures, byFirstSegment: entries.every(({ rule: { path: each } }) => !each.slice(1).includes('/')), hasPaths: entries.some(({ rule: { path: each } }) => each !== '/') }
  }

  #add (port: number, entry: Entry, open: Map<string, Set<string>>): void {
    const shape = shapeOf(entry.rule.hostname)
    const key = keyOf(port, shape)
    const entries = this.#entries.get(key)
    if (entries !== undefined) {
      entries.push(entry)
      return
    }
    this.#entries.set(key, [entry])
    const labels = shape.split('.')
    if (!labels.includes(OPEN)) return
    const openKey = openKeyOf(port, labels.length)
    const masks = open.get(openKey) ?? new Set()
    open.set(openKey, masks.add(labels.map((label) => label === OPEN ? OPEN : OWN).join('')))
  }
}

/** of a shape, and of a mask */
const OPEN = '*'
/** of a mask: behind OPEN in the order of texts, as every label is */
const OWN = 'x'

function openKeyOf (port: number, labels: number): string {
  return `${port} ${labels}`
}

function keyOf (port: number, shape: string): string {
  return `${port} ${shape}`
}

function ownLabels (mask: string): number {
  return [...mask].filter((label) => label === OWN).length
}

function isBelow (path: string, prefix: string): boolean {
  return prefix === '/' || path === prefix || path.startsWith(`${prefix}/`)
}
