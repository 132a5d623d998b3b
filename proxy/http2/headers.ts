// Header lines as HTTP/2 in Node wants them: one object, names in lower case, several values in a list.
import type { OutgoingHttpHeaders } from 'node:http2'
import { isHopByHop } from '../gate/hop-by-hop.ts'
import type { HostRules } from '../policy/host-rules.ts'
import type { StreamHead } from './head.ts'

/** Turns names and values in turn into Node's object. */
export function toObject (raw: readonly string[]): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? '').toLowerCase()
    const value = raw[index + 1] ?? ''
    const known = headers[name]
    headers[name] = known === undefined ? value : typeof known === 'string' ? [known, value] : [...known, value]
  }
  return headers
}

/** The lines of a request that go on, with what the rules set; names and values in turn. */
export function requestLines (head: StreamHead, rules: HostRules): string[] {
  const lines: string[] = []
  for (let index = 0; index < head.raw.length; index += 2) {
    const name = head.raw[index] ?? ''
    if (!isHopByHop(name, undefined) && !rules.keys.has(name.replaceAll('_', '-'))) lines.push(name, head.raw[index + 1] ?? '')
  }
  for (const { header, value } of rules.injections) lines.push(header, value)
  return lines
}
