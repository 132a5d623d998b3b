// The header lines of a request to an origin: the guest's in their order and spelling, without what ends here, and what the rules set.
import { isHopByHop } from '../gate/hop-by-hop.ts'
import type { HostRules } from '../policy/host-rules.ts'
import type { RequestHead } from './request-head.ts'

/** Names and values in turn. `host` is used when an HTTP/1.0 request names none. */
export function requestLines (raw: readonly string[], { names, nominated, host: written }: RequestHead, rules: HostRules, host: string): string[] {
  const lines: string[] = []
  for (let index = 0; index < names.length; index++) {
    const name = names[index] ?? ''
    if (isHopByHop(name, nominated) || isSetByRules(name, rules)) continue
    lines.push(raw[index * 2] ?? '', raw[index * 2 + 1] ?? '')
  }
  if (written === undefined) lines.push('Host', host)
  for (const { header, value } of rules.injections) lines.push(header, value)
  return lines
}

function isSetByRules (name: string, rules: HostRules): boolean {
  if (rules.keys.size === 0) return false
  return rules.keys.has(name.includes('_') ? name.replaceAll('_', '-') : name)
}
