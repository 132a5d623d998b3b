// Filters the header of an origin's answer for the guest.
import { FieldSection, mayTrail } from './field-section.ts'
import { isHopByHop } from './hop-by-hop.ts'
import type { Counters } from '../log/counters.ts'
import type { HostRules } from './host-rules.ts'
import { BadAnswer } from './bad-answer.ts'
import { withoutSecrets } from './echo.ts'

// They would send the guest to another address or protocol, around this proxy.
const WAYS_AROUND = new Set(['alt-svc', 'alt-used'])
// What frames the message is numbers and words of the protocol, and must stay what it is.
const FRAMING = new Set(['content-length', 'transfer-encoding'])

export interface FilteredHeaders {
  /** names and values in turn, in the origin's order and spelling */
  readonly raw: string[]
  readonly chunked: boolean
}

/** What of an answer's header goes to the guest. Throws a BadAnswer when it says two things at once. */
export function filterHeaders (raw: readonly string[], rules: HostRules, counters: Counters, status = 200): FilteredHeaders {
  // What has no body has no length (RFC 9110, 8.6), and HTTP/2 clients reset a stream that says otherwise.
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
    section.add(name, written, rules.echoes.length === 0 || FRAMING.has(name) ? value : withoutSecrets(value, rules, counters))
  }
  if (section.contradicts) throw new BadAnswer('a field that has one value came with two')
  return { raw: section.lines, chunked }
}

/** What of an answer's trailers goes to the guest. */
export function filterTrailers (raw: readonly string[], rules: HostRules, counters: Counters): string[] {
  return filterHeaders(raw.filter((_, index) => mayTrail((raw[index - index % 2] ?? '').toLowerCase())), rules, counters).raw
}

/** The lines without those of one field, its name in lower case. */
export function withoutField (raw: readonly string[], name: string): string[] {
  return raw.filter((_, index) => (raw[index - index % 2] ?? '').toLowerCase() !== name)
}

function addNominated (known: Set<string> | undefined, connection: string): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return known
  const names = known ?? new Set<string>()
  for (const name of connection.split(',')) names.add(name.trim().toLowerCase())
  return names
}
