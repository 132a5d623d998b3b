// A Dockerfile's text: its instructions, their words, and the expansion of arguments. The sender of the Dockerfile is not trusted: each function reads a character
// a bounded number of times, and expanded arguments have a limit.
import { BuildFailed } from '../errors.ts'

/** characters that all arguments of a Dockerfile may expand to together: without it, twenty lines that each contain the previous one twice would make a million */
const MAX_EXPANDED = 2 ** 20

/** Instructions with their continued lines joined; neither comments nor empty lines. */
export function instructions (dockerfile: string): string[] {
  const lines = dockerfile.split('\n').map((line) => line.trim())
  const escape = escapeCharacter(lines)
  const found: string[] = []
  let parts: string[] = []
  for (const line of lines) {
    if (line === '' || line.startsWith('#')) continue
    const isContinued = line.endsWith(escape)
    parts.push(isContinued ? line.slice(0, -1).trimEnd() : line)
    if (isContinued) continue
    found.push(parts.join(' '))
    parts = []
  }
  return parts.length === 0 ? found : [...found, parts.join(' ')]
}

/** The value of the directive `# escape=`. Directives come before everything else. */
function escapeCharacter (lines: readonly string[]): string {
  for (const line of lines) {
    const equals = line.indexOf('=')
    if (!line.startsWith('#') || equals === -1) break
    if (line.slice(1, equals).trim().toLowerCase() === 'escape') return line.slice(equals + 1).trim().startsWith('`') ? '`' : '\\'
  }
  return '\\'
}

/** Splits a line at white space outside of quotes; the quotes stay. A quote without an end is an ordinary character. */
export function words (line: string): string[] {
  const found: string[] = []
  let start = -1
  for (let at = 0; at < line.length; at++) {
    const character = line.charAt(at)
    if (character.trim() === '') {
      if (start !== -1) found.push(line.slice(start, at))
      start = -1
      continue
    }
    if (start === -1) start = at
    const end = character === '"' || character === "'" ? line.indexOf(character, at + 1) : -1
    if (end !== -1) at = end
  }
  return start === -1 ? found : [...found, line.slice(start)]
}

export function unquote (word: string): string {
  const first = word.charAt(0)
  return (first === '"' || first === "'") && word.length > 1 && word.endsWith(first) ? word.slice(1, -1) : word
}

/** Expands arguments, for one Dockerfile. */
export interface Expansion {
  /** `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME:+other}`. @throws build_failed when they grow too long */
  expand (text: string, values: ReadonlyMap<string, string>): string
}

export function createExpansion (): Expansion {
  let left = MAX_EXPANDED
  return {
    expand (text, values) {
      const parts: string[] = []
      const give = (part: string): void => {
        left -= part.length
        if (left < 0) throw BuildFailed(`dockerfile: arguments and names of images grow to more than ${MAX_EXPANDED} characters`)
        parts.push(part)
      }
      const lastBrace = text.lastIndexOf('}')
      let at = 0
      for (let dollar = text.indexOf('$'); dollar !== -1; dollar = text.indexOf('$', Math.max(at, dollar + 1))) {
        const found = referenceAt(text, dollar + 1, lastBrace)
        if (found === undefined) continue
        give(text.slice(at, dollar))
        give(valueOf(found, values))
        at = found.end
      }
      give(text.slice(at))
      return parts.join('')
    }
  }
}

interface Reference {
  readonly name: string
  /** the operator and its word: `:-default`; empty for none */
  readonly rest: string
  readonly end: number
}

/** @param lastBrace the position of the last `}`: none is searched for behind it */
function referenceAt (text: string, at: number, lastBrace: number): Reference | undefined {
  const isBraced = text.charAt(at) === '{'
  const start = isBraced ? at + 1 : at
  const end = endOfName(text, start)
  if (end === start) return undefined
  const name = text.slice(start, end)
  if (!isBraced) return { name, rest: '', end }
  if (text.charAt(end) === '}') return { name, rest: '', end: end + 1 }
  const operator = text.charAt(end) === ':' ? text.charAt(end + 1) : text.charAt(end)
  if ((operator !== '-' && operator !== '+') || end > lastBrace) return undefined
  const close = text.indexOf('}', end)
  return { name, rest: text.slice(end, close), end: close + 1 }
}

function endOfName (text: string, start: number): number {
  let end = start
  while (end < text.length && /\w/.test(text.charAt(end))) end++
  return end
}

function valueOf ({ name, rest }: Reference, values: ReadonlyMap<string, string>): string {
  const value = values.get(name) ?? ''
  const operator = rest.startsWith(':') ? rest.slice(0, 2) : rest.slice(0, 1)
  const word = rest.slice(operator.length)
  if (operator === '') return value
  if (operator.endsWith('+')) return value === '' ? '' : word
  return value === '' ? word : value
}
