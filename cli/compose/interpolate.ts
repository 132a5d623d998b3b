// Variables in values, in the syntax of the Compose Specification: $NAME, ${NAME}, and in braces :- - :? ? :+ + with a text that may contain variables itself; $$ is a dollar.
import type { Path } from './source.ts'

export interface Variables {
  /** undefined: not set */
  get (name: string): string | undefined
  /** called for each variable that is not set and has no default */
  missing (name: string): void
}

/** Why a text cannot be interpolated. */
export class InterpolationFault extends Error {}

const MAX_DEPTH = 16
const MAX_LENGTH = 1024 * 1024

/** The same value with every text in it interpolated. Names of fields stay as they are. */
export function interpolated (value: unknown, variables: Variables, refuse: (path: Path, fault: string) => Error, path: Path = []): unknown {
  if (typeof value === 'string') {
    try {
      return expand(value, variables)
    } catch (error) {
      throw error instanceof InterpolationFault ? refuse(path, error.message) : error
    }
  }
  if (Array.isArray(value)) return value.map((each, index) => interpolated(each, variables, refuse, [...path, index]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, interpolated(each, variables, refuse, [...path, name])]))
}

export function expand (text: string, variables: Variables, depth = 0): string {
  if (depth > MAX_DEPTH) throw new InterpolationFault('variables stand too deep in each other')
  let out = ''
  for (let at = 0; at < text.length;) {
    const dollar = text.indexOf('$', at)
    if (dollar < 0) return checked(out + text.slice(at))
    out = checked(out + text.slice(at, dollar))
    const next = text.charAt(dollar + 1)
    if (next === '$') {
      out += '$'
      at = dollar + 2
    } else if (next === '{') {
      const end = closing(text, dollar + 2)
      out += braced(text.slice(dollar + 2, end), variables, depth)
      at = end + 1
    } else {
      const name = nameAt(text, dollar + 1)
      if (name === '') throw new InterpolationFault('a single $ is no variable; write $$ for a dollar')
      out += plain(name, variables)
      at = dollar + 1 + name.length
    }
  }
  return checked(out)
}

/** The position of the closing brace of the one that was opened before `from`. */
function closing (text: string, from: number): number {
  for (let at = from, open = 1; at < text.length; at += 1) {
    if (text.startsWith('${', at)) open += 1
    else if (text[at] === '}' && --open === 0) return at
  }
  throw new InterpolationFault('${ without its }')
}

function braced (inside: string, variables: Variables, depth: number): string {
  const name = nameAt(inside, 0)
  const rest = inside.slice(name.length)
  const operator = /^:?[-?+]/.exec(rest)?.[0] ?? ''
  if (name === '' || (operator === '' && rest !== '')) throw new InterpolationFault(`\${${inside.slice(0, 100)}} is no variable`)
  if (operator === '') return plain(name, variables)
  const value = variables.get(name)
  const isThere = value !== undefined && (value !== '' || !operator.startsWith(':'))
  const other = (): string => expand(rest.slice(operator.length), variables, depth + 1)
  if (operator.endsWith('+')) return isThere ? other() : ''
  if (isThere) return value
  if (operator.endsWith('-')) return other()
  const why = other()
  throw new InterpolationFault(`the variable ${name} is not set${why === '' ? '' : `: ${why}`}`)
}

function plain (name: string, variables: Variables): string {
  const value = variables.get(name)
  if (value === undefined) variables.missing(name)
  return value ?? ''
}

function nameAt (text: string, from: number): string {
  return /^[A-Za-z_]\w*/.exec(text.slice(from, from + 256))?.[0] ?? ''
}

function checked (text: string): string {
  if (text.length > MAX_LENGTH) throw new InterpolationFault('a value becomes too long by its variables')
  return text
}
