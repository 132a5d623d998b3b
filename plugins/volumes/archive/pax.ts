// Reads the records of a pax header: `LENGTH KEY=VALUE\n`, which replace fields of the header that follows.
import { ArchiveInvalid } from '../errors.ts'

export type PaxRecords = ReadonlyMap<string, Buffer>

/** the key under which all records of GNU's sparse files are */
export const SPARSE = 'GNU.sparse'

/** All others are dropped: those for the whole archive are kept until its end, and it may have any number of them. */
const USED = new Set(['path', 'linkpath', 'size', 'uid', 'gid', 'mtime'])
const MAX_LENGTH_DIGITS = 8
const SPACE = 0x20
const EQUALS = 0x3d
const NEWLINE = 0x0a

/** The records that are used. One with an empty value takes an earlier one back. */
export function readPax (bytes: Buffer): Map<string, Buffer> {
  const records = new Map<string, Buffer>()
  let at = 0
  while (at < bytes.length) {
    const space = bytes.indexOf(SPACE, at)
    const digits = bytes.toString('latin1', at, space < 0 ? at : space)
    if (space < 0 || digits.length > MAX_LENGTH_DIGITS || !/^[1-9][0-9]*$/.test(digits)) throw malformed()
    const end = at + Number(digits)
    const equals = bytes.indexOf(EQUALS, space)
    if (end > bytes.length || equals < 0 || equals >= end - 1 || equals === space + 1 || bytes[end - 1] !== NEWLINE) throw malformed()
    const name = bytes.toString('utf8', space + 1, equals)
    const key = name.startsWith(`${SPARSE}.`) ? SPARSE : name
    if (key === SPARSE || USED.has(key)) records.set(key, bytes.subarray(equals + 1, end - 1))
    at = end
  }
  return records
}

/** A record that is a number; undefined when there is none. Fractions of seconds are dropped. */
export function paxNumber (records: PaxRecords, key: string): number | undefined {
  const text = records.get(key)?.toString('latin1')
  if (text === undefined || text === '') return undefined
  if (!/^-?[0-9]{1,20}(\.[0-9]*)?$/.test(text)) throw ArchiveInvalid(`a pax record has a ${key} that is no number`)
  const value = Math.trunc(Number(text))
  if (!Number.isSafeInteger(value)) throw ArchiveInvalid(`a pax record has an impossible ${key}`)
  return value
}

function malformed (): Error {
  return ArchiveInvalid('a pax header is malformed')
}
