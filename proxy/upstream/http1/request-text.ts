// The header of a request as it is written to an origin.
import { FIELD_NAME } from '../../contract/field.ts'
import type { OutgoingHead } from './call.ts'
import { fieldLines } from './fields.ts'

/** No white space and nothing that ends the line. The guest's parsers refuse these, too; this is the last check. */
const PATH = /^[\x21-\x7e\x80-\xff]+$/

/** `undefined` when a receiver could read it differently. */
export function requestText ({ method, path, lines, body }: OutgoingHead): string | undefined {
  const fields = fieldLines(lines)
  // A method is a token, like a field name.
  if (fields === undefined || !FIELD_NAME.test(method) || !PATH.test(path)) return undefined
  return `${method} ${path} HTTP/1.1\r\n${fields}${body === 'chunked' ? 'Transfer-Encoding: chunked\r\n' : ''}\r\n`
}
