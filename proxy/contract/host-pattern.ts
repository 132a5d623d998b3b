// Patterns of hosts in rules: an exact name, or `*.` before a name for exactly one more label.
import { canonicalHost } from './canonical-host.ts'

export interface HostPattern {
  /** the exact name, or for a wildcard what follows `*.` */
  readonly name: string
  readonly wildcard: boolean
}

/** `undefined` for an invalid pattern. A wildcard needs two labels after it, so that none covers a whole top-level domain. */
export function parsePattern (text: string): HostPattern | undefined {
  const wildcard = text.startsWith('*.')
  const written = wildcard ? text.slice(2) : text
  const host = written.endsWith('.') ? undefined : canonicalHost(written)
  if (host === undefined || host.family !== 0) return undefined
  return wildcard && !host.name.includes('.') ? undefined : { name: host.name, wildcard }
}

/** Whether the pattern matches `name`, which is canonical. */
export function matchesPattern (pattern: HostPattern, name: string): boolean {
  if (!pattern.wildcard) return pattern.name === name
  const dot = name.indexOf('.')
  return dot > 0 && name.length === dot + 1 + pattern.name.length && name.endsWith(pattern.name)
}
