// Which lines of a guest's header and trailers are passed on, in every protocol on either side.
import type { HostRules } from './host-rules.ts'
import type { ExchangeTrace } from '../audit/exchange-trace.ts'
import { FieldSection, mayTrail } from './field-section.ts'
import { isHopByHop } from './hop-by-hop.ts'

export interface RequestFields {
  /** names and values in turn, as the guest wrote them */
  readonly raw: readonly string[]
  /** the names alone, in lower case and in the same order */
  readonly names: readonly string[]
  /** those that the header itself says are for one hop */
  readonly nominated?: ReadonlySet<string> | undefined
}

/** Adds the lines of a header that are passed on: neither hop-by-hop ones nor those that the rules set. */
export function addRequestFields (section: FieldSection, { raw, names, nominated }: RequestFields, rules: HostRules, trace: ExchangeTrace | undefined): void {
  for (let index = 0; index < names.length; index++) {
    const name = names[index] ?? ''
    if (!isHopByHop(name, nominated) && !isSetByRules(name, rules) && trace?.keeps(name) !== true) section.add(name, raw[index * 2] ?? '', raw[index * 2 + 1] ?? '')
  }
}

/** The trailers that are passed on, names and values in turn; `undefined` when a field with a single value comes with two. */
export function requestTrailers (raw: readonly string[], rules: HostRules): readonly string[] | undefined {
  if (raw.length === 0) return raw
  const section = new FieldSection()
  for (let index = 0; index < raw.length; index += 2) {
    const written = raw[index] ?? ''
    const name = written.toLowerCase()
    if (mayTrail(name) && !isHopByHop(name, undefined) && !isSetByRules(name, rules)) section.add(name, written, raw[index + 1] ?? '')
  }
  return section.contradicts ? undefined : section.lines
}

function isSetByRules (name: string, rules: HostRules): boolean {
  if (rules.keys.size === 0) return false
  return rules.keys.has(name.includes('_') ? name.replaceAll('_', '-') : name)
}
