// Host names of rules: exact, `*.` before them, or with captures that stand for whole labels. Read label by label.
import { InvalidRequest } from '../../../core/errors/common.ts'

const MOST = 253
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/
const CAPTURE = /^\{([a-z][a-z0-9_]{0,31})\}$/
const DIGITS = /^[0-9]+$/

/** The host name as it is stored. @throws invalid_request that names the field */
export function hostname (field: string, text: string): string {
  const name = text.toLowerCase()
  if (name === '' || name.length > MOST) throw InvalidRequest(`${field}: must have 1 to ${MOST} characters`)
  const labels = name.split('.')
  const captures = new Set<string>()
  for (const [index, label] of labels.entries()) {
    const capture = CAPTURE.exec(label)?.[1]
    if (label === '*' && index === 0) continue
    if (capture === undefined && !LABEL.test(label)) throw InvalidRequest(`${field}: the label "${label}" is none of a host name; * may stand for the first label, and {name} for any whole one`)
    if (capture === undefined) continue
    if (captures.has(capture)) throw InvalidRequest(`${field}: {${capture}} stands in it twice`)
    captures.add(capture)
  }
  if (!labels.some((label) => !isOpen(label))) throw InvalidRequest(`${field}: needs a label of its own, or it would take every host`)
  if (labels[0] === '*' && captures.size > 0) throw InvalidRequest(`${field}: has either * or captures`)
  if (DIGITS.test(labels.at(-1) ?? '')) throw InvalidRequest(`${field}: must be a name, not an address`)
  return name
}

export function isOpen (label: string): boolean {
  return label === '*' || CAPTURE.test(label)
}

export function capturesOf (name: string): string[] {
  return name.split('.').flatMap((label) => CAPTURE.exec(label)?.[1] ?? [])
}

/** `example` of `{example}`. */
export function captureName (text: string): string | undefined {
  return CAPTURE.exec(text)?.[1]
}

/** The same text for all names that match the same hosts. */
export function shapeOf (name: string): string {
  return name.split('.').map((label) => isOpen(label) ? '*' : label).join('.')
}

/** The values of the captures for this host; undefined when the name does not match. */
export function matchHost (name: string, host: string): ReadonlyMap<string, string> | undefined {
  const [wanted, given] = [name.split('.'), host.split('.')]
  if (wanted.length !== given.length) return undefined
  const found = new Map<string, string>()
  for (const [index, label] of wanted.entries()) {
    const text = given[index] ?? ''
    if (!isOpen(label) && label !== text) return undefined
    if (!LABEL.test(text)) return undefined
    const capture = captureName(label)
    if (capture !== undefined) found.set(capture, text)
  }
  return found
}
