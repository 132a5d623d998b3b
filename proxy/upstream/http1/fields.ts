// Header and trailer lines of HTTP/1.1: read strictly, and written only when a receiver reads the same.
import { FIELD_NAME, FIELD_VALUE } from '../../contract/field.ts'
import { BadAnswer } from '../../gate/bad-answer.ts'

/** The fields that say where a message ends. */
export const FRAMING = /^(?:content-length|transfer-encoding)$/i

/** Names and values in turn, in the order and spelling of the lines. */
export function readFields (lines: readonly string[], from: number): string[] {
  const raw: string[] = []
  for (let index = from; index < lines.length; index++) {
    const line = lines[index] ?? ''
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0))
    const value = withoutSpace(line, colon + 1)
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) throw new BadAnswer('a header line is not a name, a colon and a value')
    // Node's parser takes such a tab for a part of the value.
    if (line.includes('\t') && FRAMING.test(name)) throw new BadAnswer('there is a tab in what frames the answer')
    raw.push(name, value)
  }
  return raw
}

/** The lines of names and values in turn; `undefined` when one of them could end its line or the header. */
export function fieldLines (raw: readonly string[]): string | undefined {
  let text = ''
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? ''
    const value = raw[index + 1] ?? ''
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return undefined
    text += `${name}: ${value}\r\n`
  }
  return text
}

/** The text from an index on, without blanks and tabs at its ends. */
function withoutSpace (line: string, from: number): string {
  let start = from
  let end = line.length
  while (start < end && isBlank(line.charCodeAt(start))) start++
  while (end > start && isBlank(line.charCodeAt(end - 1))) end--
  return line.slice(start, end)
}

function isBlank (code: number): boolean {
  return code === 0x20 || code === 0x09
}
