// The header lines of a request to an origin: the guest's in their order and spelling, without hop-by-hop ones, and those that the rules set.
import { FieldSection } from '../../gate/field-section.ts'
import { addRequestFields } from '../../gate/request-fields.ts'
import type { HostRules } from '../../gate/host-rules.ts'
import type { ExchangeTrace } from '../../audit/exchange-trace.ts'
import type { RequestHead } from './request-head.ts'

/** Names and values in turn; `undefined` when a field with a single value comes with two. `host` is used when an HTTP/1.0 request names none. */
export function requestLines (raw: readonly string[], { names, nominated, host: written }: RequestHead, rules: HostRules, host: string, trace?: ExchangeTrace): string[] | undefined {
  const section = new FieldSection()
  addRequestFields(section, { raw, names, nominated }, rules, trace)
  if (section.contradicts) return undefined
  if (written === undefined) section.lines.push('Host', host)
  for (const { header, value } of rules.injections) section.lines.push(header, value)
  return section.lines
}
