// Header and trailer lines of HTTP/1.1 as they travel: read strictly, written only when they are what a receiver would read.
import { FIELD_LINE, FIELD_NAME, FIELD_VALUE } from '../../gate/field.ts'
import { BadAnswer } from './bad-answer.ts'

/** Names and values in turn, in the order and spelling of the lines. */
export function readFields (lines: readonly string[], from: number): string[] {
  const raw: string[] = []
  for (let index = from; index < lines.length; index++) {
    const field = FIELD_LINE.exec(lines[index] ?? '')
    if (field === null) throw new BadAnswer('a header line is not a name, a colon and a value')
    raw.push(field[1] ?? '', withoutSpaceAtEnd(field[2] ?? ''))
  }
  return raw
}

/** The lines of names and values in turn; `undefined` when one could end its line, or the header. */
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

function withoutSpaceAtEnd (value: string): string {
  let end = value.length
  while (end > 0 && (value[end - 1] === ' ' || value[end - 1] === '\t')) end--
  return end === value.length ? value : value.slice(0, end)
}
