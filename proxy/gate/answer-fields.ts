// Filters the header of an origin's answer for the guest.
import { FieldSection, mayTrail } from './field-section.ts'
import { isHopByHop } from './hop-by-hop.ts'
import type { Counters } from '../log/counters.ts'
import type { HostRules } from './host-rules.ts'
import { BadAnswer } from './bad-answer.ts'
import { namesSecret, withoutSecrets } from './echo.ts'

// These fields would send the guest to another address or protocol, around this proxy.
const WAYS_AROUND = new Set(['alt-svc', 'alt-used'])
// Framing fields are numbers and words of the protocol, so the secrets in them are not replaced.
const FRAMING = new Set(['content-length', 'transfer-encoding'])

export interface FilteredHeaders {
  /** names and values in turn, in the origin's order and spelling */
  readonly raw: string[]
  readonly chunked: boolean
}

/** The part of an answer's header that goes to the guest. Throws a BadAnswer when the header contradicts itself. */
export function filterHeaders (raw: readonly string[], rules: HostRules, counters: Counters, status = 200): FilteredHeaders {
  // An answer without a body has no length (RFC 9110, 8.6), and HTTP/2 clients reset a stream that announces one.
  const hasLength = status >= 200 && status !== 204 && status !== 205
  const section = new FieldSection()
  let nominated: Set<string> | undefined
  let chunked = false
  for (let index = 0; index < raw.length; index += 2) {
    if ((raw[index] ?? '').length === 10 && raw[index]?.toLowerCase() === 'connection') nominated = addNominated(nominated, raw[index + 1] ?? '')
  }
  for (let index = 0; index < raw.length; index += 2) {
    const written = raw[index] ?? ''
    const name = written.toLowerCase()
    const value = raw[index + 1] ?? ''
    if (name === 'transfer-encoding') chunked = true
    if (name === 'content-length' && !hasLength) continue
    if (isHopByHop(name, nominated) || WAYS_AROUND.has(name) || name.startsWith(':')) continue
    if (rules.echoes.length === 0 || FRAMING.has(name)) {
      section.add(name, written, value)
    } else if (namesSecret(name, rules)) {
      counters.echoesReplaced++
    } else {
      section.add(name, written, withoutSecrets(value, rules, counters))
    }
  }
  if (section.contradicts) throw new BadAnswer('a field that has one value came with two')
  return { raw: section.lines, chunked }
}

/** The part of an answer's trailers that goes to the guest. */
export function filterTrailers (raw: readonly string[], rules: HostRules, counters: Counters): string[] {
  return filterHeaders(raw.filter((_, index) => mayTrail((raw[index - index % 2] ?? '').toLowerCase())), rules, counters).raw
}

/** The lines without those of one field, whose name is given in lower case. */
export function withoutField (raw: readonly string[], name: string): string[] {
  return raw.filter((_, index) => (raw[index - index % 2] ?? '').toLowerCase() !== name)
}

function addNominated (known: Set<string> | undefined, connection: string): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return known
  const names = known ?? new Set<string>()
  for (const name of connection.split(',')) names.add(name.trim().toLowerCase())
  return names
}
