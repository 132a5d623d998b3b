// Filters the header of an origin's answer for the guest.
import { isHopByHop } from '../gate/hop-by-hop.ts'
import type { Counters } from '../metrics/counters.ts'
import type { HostRules } from '../policy/host-rules.ts'
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

/** What of an answer's header goes to the guest. */
export function filterHeaders (raw: readonly string[], rules: HostRules, counters: Counters): FilteredHeaders {
  const filtered: string[] = []
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
    if (isHopByHop(name, nominated) || WAYS_AROUND.has(name)) continue
    filtered.push(written, rules.echoes.length === 0 || FRAMING.has(name) ? value : withoutSecrets(value, rules, counters))
  }
  return { raw: filtered, chunked }
}

function addNominated (known: Set<string> | undefined, connection: string): Set<string> | undefined {
  if (connection === 'keep-alive' || connection === 'close') return known
  return new Set([...known ?? [], ...connection.split(',').map(name => name.trim().toLowerCase())])
}
