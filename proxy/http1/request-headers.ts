// Writes the header of a request to an origin: the guest's lines in their order and spelling, without what ends here, and with what the rules set.
import type { ClientRequest } from 'node:http'
import { isHopByHop } from '../gate/hop-by-hop.ts'
import type { HostRules } from '../policy/host-rules.ts'
import type { RequestHead } from './request-head.ts'

/** `host` is used when an HTTP/1.0 request names none. */
export function writeRequestHeaders (outgoing: ClientRequest, raw: readonly string[], head: RequestHead, rules: HostRules, host: string): void {
  const { names, nominated } = head
  for (let index = 0; index < names.length; index++) {
    const name = names[index] ?? ''
    if (isHopByHop(name, nominated) || isSetByRules(name, rules)) continue
    outgoing.appendHeader(raw[index * 2] ?? '', raw[index * 2 + 1] ?? '')
  }
  if (head.host === undefined) outgoing.setHeader('Host', host)
  if (head.chunked) outgoing.setHeader('Transfer-Encoding', 'chunked')
  for (const { header, value } of rules.injections) outgoing.setHeader(header, value)
}

function isSetByRules (name: string, rules: HostRules): boolean {
  if (rules.keys.size === 0) return false
  return rules.keys.has(name.includes('_') ? name.replaceAll('_', '-') : name)
}
