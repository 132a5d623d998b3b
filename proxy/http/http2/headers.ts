// Header lines in the form that HTTP/2 in Node takes: one object, names in lower case, several values in a list.
import type { OutgoingHttpHeaders } from 'node:http2'
import { FIELD_NAME, FIELD_VALUE } from '../../contract/field.ts'
import { FieldSection } from '../../gate/field-section.ts'
import { addRequestFields } from '../../gate/request-fields.ts'
import type { HostRules } from '../../gate/host-rules.ts'
import type { ExchangeTrace } from '../../audit/exchange-trace.ts'
import type { StreamHead } from './head.ts'

/** Turns names and values in turn, as a `FieldSection` gives them, into Node's object; `undefined` when a line is invalid. */
export function toObject (raw: readonly string[]): OutgoingHttpHeaders | undefined {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? '').toLowerCase()
    const value = raw[index + 1] ?? ''
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return undefined
    const known = headers[name]
    if (Array.isArray(known)) known.push(value)
    else headers[name] = known === undefined ? value : [known, value]
  }
  return headers
}

/** The lines of a request that are passed on, and those that the rules set, names and values in turn; `undefined` when a field with a single value comes with two. */
export function requestLines (head: StreamHead, rules: HostRules, trace?: ExchangeTrace): string[] | undefined {
  const section = new FieldSection()
  const names = head.raw.filter((_, index) => index % 2 === 0)
  addRequestFields(section, { raw: head.raw, names }, rules, trace)
  if (section.contradicts) return undefined
  for (const { header, value } of rules.injections) section.lines.push(header, value)
  return section.lines
}
