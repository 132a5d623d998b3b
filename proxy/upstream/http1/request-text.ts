// The header of a request as it is written to an origin.
import { FIELD_NAME } from '../../contract/field.ts'
import type { OutgoingHead } from './call.ts'
import { fieldLines } from './fields.ts'

/** Neither white space nor what could end the line: the guest's parsers take none, this is the last one who looks. */
const PATH = /^[\x21-\x7e\x80-\xff]+$/

/** `undefined` when it would be read as something else than what it says. */
export function requestText ({ method, path, lines, body }: OutgoingHead): string | undefined {
  const fields = fieldLines(lines)
  // Methods are tokens, as names are.
  if (fields === undefined || !FIELD_NAME.test(method) || !PATH.test(path)) return undefined
  return `${method} ${path} HTTP/1.1\r\n${fields}${body === 'chunked' ? 'Transfer-Encoding: chunked\r\n' : ''}\r\n`
}
